// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/row.h"

namespace hcomm::bench::overlap {

namespace {

template <typename Value>
std::vector<double> each(const std::vector<Round>& rounds, Value value) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(value(round));
  return values;
}

}  // namespace

double overlap_of(const Round& round) {
  return 1 - (round.both - round.compute) / round.comm;
}

void fill(Row& row, const std::vector<Round>& rounds) {
  const auto median = [&](double Round::*part) {
    return statistics(each(rounds, [&](const Round& round) { return round.*part; })).median;
  };
  row.rounds = rounds.size();
  row.median = {median(&Round::comm), median(&Round::compute), median(&Round::both)};
  row.overlap = overlap_of(row.median);
  const std::vector<double> overlaps = each(rounds, overlap_of);
  row.least = statistics(overlaps).least;
  row.interval = median_interval(overlaps);
}

}  // namespace hcomm::bench::overlap
