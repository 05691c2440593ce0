// SPDX-License-Identifier: Apache-2.0
// --peak: rows held against what the machine itself can do, as `hcc-bench limits --json` wrote it.
// Where no limit is known for what a row ran there is none, and nothing is guessed: several hosts,
// more than two ranks, operations that no limit was measured for.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "hcc-bench/report/row.h"

namespace hcomm::bench {

class Peaks {
 public:
  explicit Peaks(const std::string& path);  // throws invalid_argument: unreadable, not of limits
  // The busbw that nothing exceeds, in bytes/s.
  std::optional<double> busbw(const Row& row, const Facts& facts) const;
  const std::string& text() const { return text_; }  // what was measured where, for the table

 private:
  std::optional<double> shared_memory(const Row& row, const Facts& facts) const;
  std::optional<double> loopback(const Row& row) const;

  using Curve = std::map<double, double>;  // of the least time in seconds over the bytes
  Curve direct_, bounce_;
  // Of the congestion control that is best at it.
  std::optional<double> half_round_trip_s_, one_way_, both_ways_;
  std::string text_;
};

}  // namespace hcomm::bench
