// SPDX-License-Identifier: Apache-2.0
// Small texts that ranks exchange at set-up: a list of byte strings, each behind its length.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm::comm {

class Fields {
 public:
  void add(std::string_view field) {
    const auto length = static_cast<uint32_t>(field.size());
    text_.append(reinterpret_cast<const char*>(&length), sizeof length);
    text_.append(field);
  }
  void add_number(uint64_t number) {
    add({reinterpret_cast<const char*>(&number), sizeof number});
  }
  const std::string& text() const { return text_; }

  // Stops at the first field that does not fit.
  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> fields;
    uint32_t length = 0;
    while (text.size() >= sizeof length) {
      std::memcpy(&length, text.data(), sizeof length);
      text.remove_prefix(sizeof length);
      if (length > text.size()) break;
      fields.emplace_back(text.substr(0, length));
      text.remove_prefix(length);
    }
    return fields;
  }
  static uint64_t number(const std::string& field) {
    uint64_t value = 0;
    std::memcpy(&value, field.data(), field.size() < sizeof value ? field.size() : sizeof value);
    return value;
  }

 private:
  std::string text_;
};

}  // namespace hcomm::comm
