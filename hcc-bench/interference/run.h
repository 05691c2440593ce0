// SPDX-License-Identifier: Apache-2.0
// `hcc-bench interference`: an operation alone and beside a load, on all ranks of the job; rank 0
// reports.
#pragma once

#include <atomic>

#include "hcc-bench/interference/options.h"
#include "hcc-bench/run.h"
#include "hcc-bench/world.h"

namespace hcomm::bench::interference {

// Throws Error. All ranks end alike.
Outcome run(World& world, const Options& options, const std::atomic<int>& stop_signal);

}  // namespace hcomm::bench::interference
