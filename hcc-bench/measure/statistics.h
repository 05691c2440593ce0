// SPDX-License-Identifier: Apache-2.0
// Statistics of a handful to thousands of samples that are far from normal: order statistics only.
// Pure; every rank computes the same from the same samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hcomm::bench {

struct Statistics {
  size_t n = 0;
  double least = 0, median = 0;
  std::optional<double> p99;  // nearest rank; from 100 samples on
  double cv = 0;              // standard deviation / mean
  double noise = 0;           // half of the 95 % interval of the median, as a share of it
};
Statistics statistics(std::span<const double> samples);

// The 95 % interval of the median; of few samples all of them.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::span<const double> samples);

// Bandwidths as nccl-tests defines them, in 1e9 bytes/s: algbw = bytes / seconds, busbw = algbw *
// factor. Nothing where there are no bytes or no time.
struct Rates {
  std::optional<double> algbw, busbw;
};
Rates rates(size_t bytes, double seconds, double factor);

// Mann-Whitney: the probability that samples so much larger than `base` come from the same
// distribution (one-sided, normal approximation with ties). 1 where either is empty.
double probability_not_slower(std::span<const double> base, std::span<const double> now);

// At most `most` of the samples, sorted, evenly spread over their ranks, both ends included.
std::vector<double> thinned(std::span<const double> samples, size_t most);

}  // namespace hcomm::bench
