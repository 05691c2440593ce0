// SPDX-License-Identifier: Apache-2.0
// What hcc tune has measured, and the rules that follow from it. Pure values; filled by session.cpp
// from what hcc-bench writes, read by fragment.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hcomm::tune {

// One collective of one size on so many ranks over one transport.
struct Cell {
  std::string collective, transport;  // "all_reduce", "shm"
  uint32_t ranks = 0;
  size_t bytes = 0;     // 0: it has no size
  std::string choice;   // the plan that the cost model chose
  std::string actions;  // what surely beats it by more than 5 %, as rules say it; "": nothing does
  double ratio = 1;     // the choice's time by the best plan's
};

// alpha, beta of a pair of ranks over a transport.
struct Link {
  std::string transport;
  double latency_us = 0, us_per_byte = 0;
};
// gamma, of one core.
struct Work {
  double copy_us_per_byte = 0, reduce_us_per_byte = 0;
};

struct Measured {
  std::vector<Link> links;
  Work work;
  std::vector<Cell> cells;
  std::string left_out;  // why there are fewer cells than were asked for, or ""
};

// Cells of neighbouring sizes in which the same plan wins.
struct Rule {
  Cell first;       // collective, transport, ranks, smallest size, actions
  size_t last = 0;  // the largest size that was measured
  size_t next = 0;  // the next one that was measured, 0: none
  double least_ratio = 1, most_ratio = 1;
  std::string text() const;  // a line of policy.conf(5)'s [tuning]
};
// Of each collective, transport and number of ranks, by size. A size that was measured stands for
// those from it up to the next one.
std::vector<Rule> rules_of(std::span<const Cell> cells);

}  // namespace hcomm::tune
