// SPDX-License-Identifier: Apache-2.0
// A communicator of all ranks whose plans are forced by a rule of its own, or are the library's
// choice: what takes turns in a sweep over algorithms. It is split off the world, so that all of
// them are alike but for the rule.
#pragma once

#include <hcomm/hcomm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "hcc-bench/operation.h"
#include "hcc-bench/sweep.h"
#include "hcc-bench/world.h"
#include "schedule/schedule.h"

namespace hcomm::choice {

// What a rule forces; of the choice nothing.
struct Forced {
  std::string algorithm;               // "": the choice
  std::optional<uint64_t> tile_bytes;  // of a block, 0: the whole of it; nothing: as chosen
  uint32_t window = 0;                 // of tiles in flight

  std::string actions() const;  // "algorithm=ring, tile=512KiB, window=4" of policy.conf(5), or ""
  // Whether that is what runs, as hcommCommExplain tells it. A shape that an algorithm cannot run
  // is run by another one, a block smaller than a tile as a whole.
  bool runs(const std::string& plan) const;
};

class Contender {
 public:
  Contender(bench::World& world, schedule::Collective collective, Forced forced);  // collective

  const Forced& forced() const { return forced_; }
  hcommComm_t comm() const { return comm_.get(); }
  std::string plan(const bench::Sweep& sweep, size_t count) const;  // what would run

 private:
  struct Leave {
    void operator()(hcommComm_t comm) const { hcommCommDestroy(comm); }
  };
  Forced forced_;
  std::unique_ptr<std::remove_pointer_t<hcommComm_t>, Leave> comm_;
};

// The collective that an operation is, its V form included. Nothing where there is nothing to
// choose: where data go from one rank to another.
std::optional<schedule::Collective> collective_of(bench::Operation operation);
// The choice, and each algorithm of the operation's collective. Collective.
std::vector<Contender> contenders(bench::World& world, bench::Operation operation);

}  // namespace hcomm::choice
