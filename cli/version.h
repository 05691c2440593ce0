// SPDX-License-Identifier: Apache-2.0
// What was built: facts that the build wrote into version.cpp.
#pragma once

#include <string>
#include <string_view>

namespace hcomm::cli {

struct BuildFacts {
  std::string_view version;   // "0.1.0", that of the header too
  std::string_view git_hash;  // "" when not built from a clone
  std::string_view compiler;  // "GNU 12.2.0"
  std::string_view type;      // "Release"
  std::string_view sanitize;  // "address,undefined"
};
const BuildFacts& build_facts();
std::string version_code_text(int code);          // 10203 -> "1.2.3"
std::string version_line(std::string_view tool);  // "hcc 0.1.0 (c430889)"

}  // namespace hcomm::cli
