// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include <fmt/format.h>

namespace hcomm::cli {

const BuildFacts& build_facts() {
  static constexpr BuildFacts kFacts{HCOMM_BUILD_VERSION, HCOMM_BUILD_GIT_HASH,
                                     HCOMM_BUILD_COMPILER, HCOMM_BUILD_TYPE, HCOMM_BUILD_SANITIZE};
  return kFacts;
}

std::string version_code_text(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

std::string version_line(std::string_view tool) {
  const BuildFacts& facts = build_facts();
  if (facts.git_hash.empty()) return fmt::format("{} {}", tool, facts.version);
  return fmt::format("{} {} ({})", tool, facts.version, facts.git_hash);
}

}  // namespace hcomm::cli
