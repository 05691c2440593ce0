// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

namespace hcomm::cli {

Json document(std::string_view schema, int version) {
  return Json{{"schema", schema}, {"version", version}};
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_pretty(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hcomm::cli
