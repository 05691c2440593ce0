// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/bytes.h"

namespace hcomm::tune {

namespace {

auto series_of(const Cell& cell) {
  return std::tie(cell.collective, cell.transport, cell.ranks);
}

}  // namespace

std::string Rule::text() const {
  std::string conditions = fmt::format("collective={}, ranks={}, link={}", first.collective,
                                       first.ranks, first.transport);
  if (first.bytes > 0) {
    conditions += fmt::format(", size>={}", size_text(first.bytes));
    conditions += next > 0 ? fmt::format(", size<{}", size_text(next))
                           : fmt::format(", size<={}", size_text(last));
  }
  return fmt::format("{} -> {}", conditions, first.actions);
}

std::vector<Rule> rules_of(std::span<const Cell> cells) {
  std::vector<Cell> sorted(cells.begin(), cells.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const Cell& a, const Cell& b) {
    return std::tuple_cat(series_of(a), std::tie(a.bytes)) <
           std::tuple_cat(series_of(b), std::tie(b.bytes));
  });
  std::vector<Rule> rules;
  const Cell* before = nullptr;
  for (const Cell& cell : sorted) {
    const bool follows = before != nullptr && series_of(*before) == series_of(cell);
    const bool ruled = follows && !before->actions.empty();
    if (ruled && before->actions != cell.actions) rules.back().next = cell.bytes;
    if (ruled && before->actions == cell.actions) {
      Rule& rule = rules.back();
      rule.last = cell.bytes;
      rule.least_ratio = std::min(rule.least_ratio, cell.ratio);
      rule.most_ratio = std::max(rule.most_ratio, cell.ratio);
    } else if (!cell.actions.empty()) {
      rules.push_back({cell, cell.bytes, 0, cell.ratio, cell.ratio});
    }
    before = &cell;
  }
  return rules;
}

}  // namespace hcomm::tune
