// SPDX-License-Identifier: Apache-2.0
// The sampler: how long does one operation take? A sample is a batch of K operations between two
// barriers, divided by K, of the slowest rank. K is chosen so that a batch lasts about target_s
// (one operation when that is longer). Times stay local during a run of batches and are then
// maximised over the ranks in one all-reduce, so the exchange does not disturb what is timed; every
// rank then holds the same samples and takes the same decision to go on or stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "hcc-bench/measure/clock.h"
#include "hcc-bench/measure/team.h"

namespace hcomm::bench {

struct Rules {
  double target_s = 2e-4;   // of a batch
  double min_time_s = 0.2;  // of sampling one row
  double max_time_s = 2;
  double max_noise = 0.02;  // stop when the 95 % interval of the median is within it
  int64_t samples = 0;      // exactly so many; 0: by time and noise
  int64_t warmup = -1;      // operations; -1: about 30 ms of them
  int64_t batch = 0;        // operations of a sample; 0: chosen
};

struct Samples {
  std::vector<double> seconds;  // of one operation, in the order taken
  int64_t batch = 1;
  bool settled = false;      // the noise is within the rules, or their number was given
  bool interrupted = false;  // some rank was asked to stop
};

struct Subject {
  std::function<void(int64_t count)> repeat;  // runs count operations back to back
  std::function<void()> after_batch;          // not timed; may be empty
  double passes = 1;  // what `repeat` does is so many of what is reported: 2 for a round trip
};

Samples sample(Team& team, const Clock& clock, const Rules& rules, const Subject& subject,
               const std::atomic<int>& stop_signal);

}  // namespace hcomm::bench
