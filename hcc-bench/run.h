// SPDX-License-Identifier: Apache-2.0
// Runs sweeps: for each size prepares, checks, measures, reports. The same on every rank; only rank
// 0 has writers. All decisions that end a loop are the same on all ranks.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "hcc-bench/buffers.h"
#include "hcc-bench/options.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/watchdog.h"
#include "hcc-bench/world.h"

namespace hcomm::bench {

// What a run hands its rows to; empty on all ranks but 0.
struct Outlet {
  std::function<void(const Row&)> row;
  std::function<void(const std::vector<Row>&)> series_end;
};

struct Outcome {
  uint64_t wrong = 0;  // elements, over all ranks
  bool interrupted = false;
};

struct Session {
  World& world;
  const Options& options;
  Watchdog& watchdog;
  const std::atomic<int>& stop_signal;
  Outlet outlet;
};

Outcome run_sweeps(Session& session, const std::vector<Sweep>& sweeps);

// The operation "startup": what joining took, and splitting off, first using and destroying a
// communicator of all ranks.
Outcome run_startup(Session& session);

// Median, bandwidths and the rest of a row from its samples.
void fill_times(Row& row, const Samples& samples, double factor);

}  // namespace hcomm::bench
