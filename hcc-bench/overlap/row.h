// SPDX-License-Identifier: Apache-2.0
// What `hcc-bench overlap` finds for one operation and size, and how it follows from the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hcc-bench/measure/statistics.h"

namespace hcomm::bench::overlap {

// Seconds of the slowest rank: the operation alone, the computation alone, both at once.
struct Round {
  double comm = 0, compute = 0, both = 0;
};

// 1: the operation took no time of its own. Whatever the times are, nothing is clamped.
double overlap_of(const Round& round);

struct Row {
  std::string operation, progress, algorithm;
  int ranks = 1;
  size_t bytes = 0;  // as nccl-tests counts
  size_t rounds = 0;
  Round median;        // of each of the three
  double overlap = 0;  // of the medians
  double least = 0;    // of the rounds
  Interval interval;   // 95 %, of the median of the rounds' overlaps
  double pieces = 0;   // into which the computation was cut, with plan
  uint64_t wrong = 0;  // elements, over all ranks
};

// Times and what follows from them; at least one round.
void fill(Row& row, const std::vector<Round>& rounds);

}  // namespace hcomm::bench::overlap
