// SPDX-License-Identifier: Apache-2.0
// A communicator of all ranks whose plans are forced by a rule of its own, or are the library's
// choice: what takes turns in a sweep over algorithms. It is split off the world, so that all of
// them are alike but for the rule.
#pragma once

#include <hcomm/hcomm.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "hcc-bench/operation.h"
#include "hcc-bench/sweep.h"
#include "hcc-bench/world.h"

namespace hcomm::choice {

class Contender {
 public:
  // rule: a line of policy.conf(5)'s [tuning]; "": whatever the library chooses. Collective.
  Contender(bench::World& world, std::string algorithm, const std::string& rule);

  const std::string& algorithm() const { return algorithm_; }  // "": the choice
  hcommComm_t comm() const { return comm_.get(); }
  // What would run. A shape that the algorithm cannot run is run by another one.
  std::string plan(const bench::Sweep& sweep, size_t count) const;
  bool runs_its_own(const std::string& plan) const;

 private:
  struct Leave {
    void operator()(hcommComm_t comm) const { hcommCommDestroy(comm); }
  };
  std::string algorithm_;
  std::unique_ptr<std::remove_pointer_t<hcommComm_t>, Leave> comm_;
};

// Whether there is anything to choose: not where data go from one rank to another.
bool has_algorithms(bench::Operation operation);
// The choice, and each algorithm of the operation's collective. Collective.
std::vector<Contender> contenders(bench::World& world, bench::Operation operation);

}  // namespace hcomm::choice
