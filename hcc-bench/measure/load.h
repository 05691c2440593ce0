// SPDX-License-Identifier: Apache-2.0
// Whether this machine has anything else to do: times that were taken beside other programs are
// worth less.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hcomm::bench {

// From the first line of /proc/stat: time of all cores so far, and that in which they were busy.
struct CoreTime {
  uint64_t busy = 0, all = 0;
};
std::optional<CoreTime> parse_core_time(const std::string& line);

// The share of the cores that was busy during so long a time; sleeps. Nothing: not told.
std::optional<double> busy_share(int64_t over_ms);

}  // namespace hcomm::bench
