// SPDX-License-Identifier: Apache-2.0
// Where a tool's result goes: standard output, or a file that is there whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hcomm::tune {

enum class Existing : uint8_t { keep, overwrite };

struct Output {
  std::string path = "-";  // "-": standard output
  Existing existing = Existing::keep;

  // Throws invalid_argument where the file is there and must be kept or is none, system where it
  // could not be made: before anything is measured.
  void check() const;
  void write(std::string_view text) const;

 private:
  std::string target() const;  // what is overwritten, where the path is a link
};

}  // namespace hcomm::tune
