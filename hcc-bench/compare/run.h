// SPDX-License-Identifier: Apache-2.0
// `hcc-bench compare`: finds the peers, builds their drivers, runs the grid, writes what it says.
#pragma once

#include <atomic>

#include "hcc-bench/compare/options.h"

namespace hcomm::compare {

// The exit code. `stop` becomes the number of the signal that asks to end.
int run(const Options& options, const std::atomic<int>& stop);

}  // namespace hcomm::compare
