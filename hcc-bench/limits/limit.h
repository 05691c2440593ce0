// SPDX-License-Identifier: Apache-2.0
// What `hcc-bench limits` finds: one Limit for each thing that the machine can do and nothing built
// on it can do faster. Plain values, made by the sections (memory, cores, ...), read by report and,
// by way of the JSON, by peak.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hcomm::bench::limits {

// Samples of one operation, of the slowest process, and how far the two cores were apart.
struct Timed {
  double best_us = 0, p50_us = 0;
  std::optional<double> before_ns, after_ns;  // a cache line one way; nothing on one core
};

struct Limit {
  std::string section, name;
  size_t bytes = 0;  // that one operation makes or passes; 0: it has no size
  int processes = 1;
  std::optional<Timed> timed;  // nothing: absent, and `absent` says why
  std::string how;             // which of several ways was the fastest; ""
  std::string bounds;          // what it bounds
  std::string absent;

  std::optional<double> bytes_per_s() const {
    if (!timed || bytes == 0 || !(timed->best_us > 0)) return std::nullopt;
    return static_cast<double>(bytes) / timed->best_us * 1e6;
  }
};

// Cores share a cache or they do not, and every number of two processes follows: "near", "far", or
// "moved" where the host took them from one state to the other meanwhile. "" where there is one.
std::string_view state(const Timed& timed);
// The larger of before and after.
std::optional<double> distance_ns(const Timed& timed);

// What the sections need to know, and where their limits go.
struct Request {
  double min_time_s = 0.05;
  std::vector<int> cores;  // that may be used, at least one
  std::function<void(const Limit&)> add;
  bool pairs() const { return cores.size() > 1; }
};

// Hands on the limit with the time of `measure`, or absent where that throws `unavailable`.
void add_measured(const Request& request, Limit limit, const std::function<Timed()>& measure);
// The same for what takes two cores.
void add_of_pair(const Request& request, Limit limit, const std::function<Timed()>& measure);

void measure_memory(const Request& request);
void measure_cores(const Request& request);
void measure_exchange(const Request& request);
void measure_allreduce(const Request& request);
void measure_tcp(const Request& request);

}  // namespace hcomm::bench::limits
