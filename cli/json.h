// SPDX-License-Identifier: Apache-2.0
// JSON as the tools write it: keys in the order of writing, numbers as numbers with their unit in
// the key, null for what is not known (nan and infinity too), always valid whatever bytes a string
// holds (what is not UTF-8 is replaced). Every document begins with "schema" and "version".
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hcomm::cli {

using Json = nlohmann::ordered_json;

// {"schema": schema, "version": version}
Json document(std::string_view schema, int version);
std::string json_line(const Json& value);    // one line, without the newline
std::string json_pretty(const Json& value);  // indented by two, ends in a newline

inline Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace hcomm::cli
