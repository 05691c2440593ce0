// SPDX-License-Identifier: Apache-2.0
// hcc-bench OPERATION --sweep algo|plan: in one job the library's choice and every algorithm that
// can run, forced, measured in turn; of plans, each with the tile and window that serve it best.
// Called by main on all ranks.
#pragma once

#include <atomic>
#include <vector>

#include "hcc-bench/options.h"
#include "hcc-bench/sweep.h"
#include "hcc-bench/world.h"

namespace hcomm::choice {

struct Result {
  uint64_t wrong = 0;  // elements, over all ranks
  bool interrupted = false;
  bool reached = true;  // the choice is as good as it must be
};

// Collective; the same result on all ranks. Throws invalid_argument when no operation has
// algorithms, unsupported when something outranks what is forced.
Result run(bench::World& world, const bench::Options& options,
           const std::vector<bench::Sweep>& sweeps, const std::atomic<int>& stop);

}  // namespace hcomm::choice
