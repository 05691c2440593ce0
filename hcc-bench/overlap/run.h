// SPDX-License-Identifier: Apache-2.0
// `hcc-bench overlap`: measures the sizes of each operation on all ranks of the job; rank 0
// reports.
#pragma once

#include <atomic>

#include "hcc-bench/overlap/options.h"
#include "hcc-bench/run.h"
#include "hcc-bench/world.h"

namespace hcomm::bench::overlap {

// Throws Error. All ranks end alike.
Outcome run(World& world, const Options& options, const std::atomic<int>& stop_signal);

}  // namespace hcomm::bench::overlap
