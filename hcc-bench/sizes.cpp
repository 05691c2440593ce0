// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/sizes.h"

#include <unordered_set>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/options.h"

namespace hcomm::bench {

namespace {

constexpr size_t kMostSizes = 65'536;

void add(std::vector<size_t>& sizes, size_t size) {
  if (sizes.size() >= kMostSizes)
    fail(Code::invalid_argument, "more than {} sizes; use a larger step", kMostSizes);
  sizes.push_back(size);
}

void sweep(std::vector<size_t>& sizes, std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view rest = text.substr(colon + 1);
  const size_t first = parse_size(text.substr(0, colon));
  const size_t last = parse_size(rest.substr(0, rest.find(':')));
  std::string_view step = "x2";
  if (rest.find(':') != std::string_view::npos) step = rest.substr(rest.find(':') + 1);
  if (first > last)
    fail(Code::invalid_argument, "sweep '{}': {} is larger than {}", text, size_text(first),
         size_text(last));
  if (step.starts_with('x')) {
    const auto factor = static_cast<size_t>(cli::parse_number(step.substr(1), 2, 1 << 20));
    if (first == 0)
      fail(Code::invalid_argument, "sweep '{}': cannot multiply zero; write 0,1:...", text);
    for (size_t size = first;; size *= factor) {
      add(sizes, size);
      if (size > last / factor) return;
    }
  }
  if (!step.starts_with('+'))
    fail(Code::invalid_argument, "sweep '{}': the step is xFACTOR or +SIZE, not '{}'", text, step);
  const size_t by = parse_size(step.substr(1));
  if (by == 0) fail(Code::invalid_argument, "sweep '{}': a step of zero never ends", text);
  for (size_t size = first;; size += by) {
    add(sizes, size);
    if (last - size < by) return;
  }
}

}  // namespace

std::vector<size_t> parse_sizes(std::string_view text) {
  std::vector<size_t> sizes;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    if (item.empty()) fail(Code::invalid_argument, "sizes '{}': an empty entry", text);
    if (item.find(':') == std::string_view::npos)
      add(sizes, parse_size(item));
    else
      sweep(sizes, item);
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  std::unordered_set<size_t> seen;
  std::erase_if(sizes, [&](size_t size) { return !seen.insert(size).second; });
  return sizes;
}

}  // namespace hcomm::bench
