// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/work.h"

#include <algorithm>
#include <cstddef>

#include "base/clock.h"

namespace hcomm::bench::overlap {

namespace {

// Where ranks share cores, each gets its turns of some milliseconds: several of them.
constexpr double kLeast_s = 0.03;

}  // namespace

void Work::run(uint64_t steps) {
  // Knuth's generator; the lanes keep more than one multiplier of a core busy.
  constexpr size_t kLanes = 4;
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; i++) lanes[i] = outcome_ + i;
  for (uint64_t step = 0; step < steps; step++)
    for (uint64_t& lane : lanes) lane = lane * 6364136223846793005u + 1442695040888963407u;
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  outcome_ = sum;
}

double steps_per_second(Team& team, Work& work) {
  for (uint64_t steps = 1 << 16;; steps *= 2) {
    team.barrier();
    const int64_t start_ns = now_ns();
    work.run(steps);
    double time_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
    team.maximum({&time_s, 1});
    if (time_s >= kLeast_s) return static_cast<double>(steps) / time_s;
  }
}

void run_in_pieces(Work& work, uint64_t steps, uint64_t piece,
                   const std::function<void()>& between) {
  while (steps > 0) {
    const uint64_t now = std::min(steps, piece);
    work.run(now);
    steps -= now;
    between();
  }
}

}  // namespace hcomm::bench::overlap
