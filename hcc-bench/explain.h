// SPDX-License-Identifier: Apache-2.0
// --explain: what the words of the table mean.
#pragma once

#include <string>
#include <string_view>

namespace hcomm::bench {

std::string explain_topics();                      // "busbw|check|..."
std::string_view explain(std::string_view topic);  // ends in a newline

}  // namespace hcomm::bench
