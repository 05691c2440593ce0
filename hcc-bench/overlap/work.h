// SPDX-License-Identifier: Apache-2.0
// The computation that an operation is to hide behind: integer arithmetic in registers, so that it
// competes with the operation for a core, never for memory. Each step depends on the one before,
// and the outcome is stored, so nothing of it can be left out.
#pragma once

#include <cstdint>
#include <functional>

#include "hcc-bench/measure/team.h"

namespace hcomm::bench::overlap {

class Work {
 public:
  void run(uint64_t steps);

 private:
  volatile uint64_t outcome_ = 0;
};

// How many steps all ranks together, each on its own, do in a second: that of the slowest. The same
// on all ranks.
double steps_per_second(Team& team, Work& work);

// Does `steps`, cut into pieces of `piece`; `between` runs after each of them.
void run_in_pieces(Work& work, uint64_t steps, uint64_t piece,
                   const std::function<void()>& between);

}  // namespace hcomm::bench::overlap
