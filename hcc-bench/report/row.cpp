// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/row.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "cli/terminal.h"

namespace hcomm::bench {

std::string title_text(const Series& series) {
  std::string text = series.operation;
  for (const std::string& part : {series.type, series.redop})
    if (!part.empty()) text += fmt::format(" {}", part);
  if (!series.root.empty()) text += " root=" + series.root;
  if (!series.place.empty()) text += series.place == "in" ? ", in place" : ", out of place";
  return text + fmt::format(", {} rank{}", series.ranks, series.ranks == 1 ? "" : "s");
}

std::optional<double> peak_share(const Row& row) {
  if (!row.busbw || !row.peak) return std::nullopt;
  return *row.busbw * 1e9 / *row.peak;
}

Regimes regimes(const std::vector<Row>& rows) {
  Regimes result;
  double best = 0;
  for (const Row& row : rows) {
    if (row.bytes > 0 && row.bytes <= 4 * kKiB && row.p50_us > 0)
      result.latency_us = std::min(result.latency_us.value_or(row.p50_us), row.p50_us);
    best = std::max(best, row.busbw.value_or(0));
    if (row.bytes >= 4 * kMiB && row.busbw && *row.busbw >= result.busbw.value_or(0)) {
      result.busbw = row.busbw;
      result.peak_share = peak_share(row);
    }
  }
  for (const Row& row : rows)
    if (best > 0 && row.busbw.value_or(0) >= best / 2)
      result.crossover = std::min(result.crossover.value_or(row.bytes), row.bytes);
  return result;
}

std::string facts_line(const Facts& facts) {
  return fmt::format("{}, {}; {} rank{} on {} host{} ({}), {} cores here", facts.tool,
                     facts.library, facts.ranks, facts.ranks == 1 ? "" : "s", facts.hosts,
                     facts.hosts == 1 ? "" : "s", cli::printable(facts.hosts_text), facts.cores);
}

}  // namespace hcomm::bench
