// SPDX-License-Identifier: Apache-2.0
// The environment of a program's ranks: what hcc-launch was started with, edited by --unset, then
// --env-file, then -x. Entries that nobody names pass byte for byte. Used by plan. The launcher's
// own variables (HCOMM_RANK and the like) are taken out: the agent sets them for each rank.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hcc-launch/options.h"

namespace hcomm::launch {

// `warn` is told of names that lead to nothing. Throws invalid_argument with file:line.
std::vector<std::string> environment_for(const Program& program,
                                         std::span<const char* const> inherited,
                                         const std::function<void(std::string)>& warn);

// The value of a name in such a list; "" when it is not there.
std::string_view value_of(std::span<const std::string> environment, std::string_view name);

}  // namespace hcomm::launch
