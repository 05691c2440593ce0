// SPDX-License-Identifier: Apache-2.0
// Sets of small numbers (cores, ranks) as people write them: "0-3,8".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm::launch {

using Numbers = std::vector<uint32_t>;  // ascending, each once

Numbers parse_numbers(std::string_view text);  // throws invalid_argument that quotes the text
std::string numbers_text(const Numbers& numbers);

}  // namespace hcomm::launch
