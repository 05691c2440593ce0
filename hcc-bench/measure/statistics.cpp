// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/measure/statistics.h"

#include <algorithm>
#include <cmath>

namespace hcomm::bench {

namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

Interval interval_of(const std::vector<double>& order) {
  // Ranks of the interval's ends: the number of samples below the median is binomial(n, 1/2).
  const size_t n = order.size();
  const double half = 0.98 * std::sqrt(static_cast<double>(n));
  const double middle = static_cast<double>(n) / 2;
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(middle - half)));
  const size_t high = std::min(n - 1, static_cast<size_t>(std::ceil(middle + half)));
  return {order[low], order[high]};
}

}  // namespace

Statistics statistics(std::span<const double> samples) {
  Statistics result;
  result.n = samples.size();
  if (samples.empty()) return result;
  const std::vector<double> order = sorted(samples);
  const size_t n = order.size();
  result.least = order.front();
  result.median = n % 2 == 1 ? order[n / 2] : (order[n / 2 - 1] + order[n / 2]) / 2;
  if (n >= 100) result.p99 = order[(n * 99 + 99) / 100 - 1];  // nearest rank
  double sum = 0, squares = 0;
  for (const double value : order) sum += value;
  const double mean = sum / static_cast<double>(n);
  for (const double value : order) squares += (value - mean) * (value - mean);
  if (n > 1 && mean > 0) result.cv = std::sqrt(squares / static_cast<double>(n - 1)) / mean;
  const Interval interval = interval_of(order);
  if (result.median > 0) result.noise = (interval.high - interval.low) / 2 / result.median;
  return result;
}

Interval median_interval(std::span<const double> samples) {
  return samples.empty() ? Interval{} : interval_of(sorted(samples));
}

Rates rates(size_t bytes, double seconds, double factor) {
  if (bytes == 0 || !(seconds > 0)) return {};
  const double algbw = static_cast<double>(bytes) / seconds / 1e9;
  return {algbw, algbw * factor};
}

double probability_not_slower(std::span<const double> base, std::span<const double> now) {
  if (base.empty() || now.empty()) return 1;
  const std::vector<double> order = sorted(base);
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(now.size());
  double wins = 0, ties = 0;
  for (const double value : now) {
    const auto [low, high] = std::equal_range(order.begin(), order.end(), value);
    const auto equal = static_cast<double>(high - low);
    wins += static_cast<double>(low - order.begin()) + equal / 2;
    ties += equal;
  }
  if (ties == n * m) return 1;  // all the same
  const double deviation = std::sqrt(n * m * (n + m + 1) / 12);
  return std::erfc((wins - n * m / 2) / deviation / std::sqrt(2.0)) / 2;
}

std::vector<double> thinned(std::span<const double> samples, size_t most) {
  std::vector<double> order = sorted(samples);
  if (order.size() <= most || most < 2) return order;
  std::vector<double> result;
  for (size_t i = 0; i < most; i++) result.push_back(order[i * (order.size() - 1) / (most - 1)]);
  return result;
}

}  // namespace hcomm::bench
