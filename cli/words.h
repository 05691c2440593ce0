// SPDX-License-Identifier: Apache-2.0
// A list of names on a command line: "shm,tcp".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hcomm::cli {

// Each of them once, in the order given. Throws invalid_argument: an empty list, a word that is not
// one of `known`, with the nearest one.
std::vector<std::string> parse_words(std::string_view text, const std::vector<std::string>& known);

}  // namespace hcomm::cli
