// SPDX-License-Identifier: Apache-2.0
// The sweeps of a command line: each is one operation with one type, operator, root and place over
// all sizes, the rows of one table.
#pragma once

#include <cstddef>
#include <vector>

#include "hcc-bench/options.h"
#include "hcc-bench/report/row.h"

namespace hcomm::bench {

struct Sweep {
  Operation operation = Operation::all_reduce;
  Type type = Type::float32;
  std::optional<Op> redop;  // of reductions
  int root = 0;             // or kRootRotate
  bool in_place = false;
  std::vector<size_t> sizes;
  Series series(int ranks) const;
};

// In the order of the options. What the ranks cannot do is refused where it was named (pingpong of
// one rank, a root that is not there: invalid_argument).
std::vector<Sweep> sweeps(const Options& options, int ranks);

}  // namespace hcomm::bench
