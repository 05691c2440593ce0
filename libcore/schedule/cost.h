// SPDX-License-Identifier: Apache-2.0
// The price of a schedule: a discrete simulation of all ranks over a plain rank x rank matrix of
// links (LogGP in spirit: latency, inverse bandwidth, and what the processors of a node must
// share). Pure: the same inputs give the same number on every rank, so that all choose the same
// plan.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::schedule {

// alpha-beta of one directed pair, and what each message costs the processor of either end beside
// its bytes (LogP's o): the kernel's work where it carries them.
struct Link {
  double latency_us = 1;
  double us_per_byte = 1e-4;
  double overhead_us = 0;
};

// gamma: what local work costs, and how much of it a node does at once.
struct Machine {
  uint32_t ranks = 1;
  std::vector<Link> links;     // ranks * ranks, [from * ranks + to]
  std::vector<uint32_t> node;  // of each rank
  uint32_t cores_of_node = 1;  // ranks of a node beyond it take turns
  double handover_us = 1.5;    // one turn, when ranks share a core
  double step_us = 0.03;       // the engine's own cost of a step
  double copy_us_per_byte = 1e-4;
  double reduce_us_per_byte = 1.5e-4;
  // Of a node's last cache, 0: endless; and what it costs to send what it could not hold.
  double cache_bytes = 0, spill_us_per_byte = 6e-5;
};

struct Load {
  uint64_t block_bytes = 0;  // of one block: count * size of type
  uint64_t tile_bytes = 0;   // of a block; 0: one tile
  uint32_t window = 1;       // tiles in flight
};

// What one tile costs when it runs alone.
struct TileCost {
  double latency_us = 0;  // until the last rank is done
  double busy_us = 0;     // of the busiest port or processor
  double stay_us = 0;     // of the rank that holds its window slot longest
  double port_us = 0;     // of the busiest port: what the links between nodes take at least
};

class Whole;

// Prices one collective under many loads; the schedules are taken apart once. Both arguments
// outlive it. Throws internal when the schedules do not fit together.
class Pricer {
 public:
  Pricer(std::span<const Schedule> all, const Machine& machine);
  ~Pricer();
  // Microseconds from the common start until the last rank is done. The first tile takes its
  // latency; each further one follows at the pace of the busiest resource, or of the longest stay
  // shared by the tiles of the window.
  double predict_us(const Load& load);
  // Whether the links between nodes are what the load of the last prediction waits for.
  bool bound_by_links() const { return last_.port_us > 0 && last_.port_us >= last_.busy_us; }
  TileCost tile(double block_bytes) const;

 private:
  const Machine& machine_;
  std::unique_ptr<const Whole> whole_;
  double last_bytes_ = -1;  // loads that differ in their window only share one simulation
  TileCost last_;
};

// For one load. all[i] is rank i.
double predict_us(std::span<const Schedule> all, const Machine& machine, const Load& load);

}  // namespace hcomm::schedule
