// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/limits/limit.h"

#include <algorithm>

namespace hcomm::bench::limits {

namespace {

// Between the 25 to 60 ns of cores that share a last-level cache and the 100 and more of others.
constexpr double kFarNs = 80;

}  // namespace

std::string_view state(const Timed& timed) {
  if (!timed.before_ns || !timed.after_ns) return "";
  const bool far = *timed.before_ns >= kFarNs;
  if (far != (*timed.after_ns >= kFarNs)) return "moved";
  return far ? "far" : "near";
}

std::optional<double> distance_ns(const Timed& timed) {
  if (!timed.before_ns || !timed.after_ns) return std::nullopt;
  return std::max(*timed.before_ns, *timed.after_ns);
}

void add_measured(const Request& request, Limit limit, const std::function<Timed()>& measure) {
  try {
    limit.timed = measure();
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    limit.absent = error.text();
  }
  request.add(limit);
}

void add_of_pair(const Request& request, Limit limit, const std::function<Timed()>& measure) {
  if (request.pairs()) return add_measured(request, std::move(limit), measure);
  limit.absent = "needs two cores";
  request.add(limit);
}

}  // namespace hcomm::bench::limits
