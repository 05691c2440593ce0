// SPDX-License-Identifier: Apache-2.0
#include "cli/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/options.h"

namespace hcomm::cli {

std::vector<std::string> parse_words(std::string_view text, const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const std::string_view word : split_list(text)) {
    const std::string name(word);
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(Code::invalid_argument, "'{}' is not one of {}{}", name, fmt::join(known, ", "),
           did_you_mean(name, known));
    if (std::find(words.begin(), words.end(), name) == words.end()) words.push_back(name);
  }
  if (words.empty()) fail(Code::invalid_argument, "an empty list");
  return words;
}

}  // namespace hcomm::cli
