// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/number_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace hcomm::launch {

namespace {

constexpr uint32_t kMaxNumber = 1 << 16;

uint32_t parse_one(std::string_view text, std::string_view whole) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value >= kMaxNumber)
    fail(Code::invalid_argument, "'{}': '{}' is not a number below {}; write e.g. 0-3,8", whole,
         text, kMaxNumber);
  return value;
}

}  // namespace

Numbers parse_numbers(std::string_view text) {
  Numbers numbers;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    const size_t dash = std::min(item.find('-'), item.size());
    const uint32_t first = parse_one(item.substr(0, dash), text);
    const uint32_t last = dash == item.size() ? first : parse_one(item.substr(dash + 1), text);
    if (last < first) fail(Code::invalid_argument, "'{}': the range {} runs backwards", text, item);
    for (uint32_t number = first; number <= last; number++) numbers.push_back(number);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string numbers_text(const Numbers& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) end++;
    if (!text.empty()) text += ',';
    text += end - i == 1 ? fmt::format("{}", numbers[i])
                         : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace hcomm::launch
