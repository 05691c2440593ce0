// SPDX-License-Identifier: Apache-2.0
// The ranks of a run: the communicator of the job that started this process, who and where they
// are, and what it cost. Owned by main; a Team for the sampler. Failures of the library throw
// hcomm::Error with the library's own text.
#pragma once

#include <hcomm/hcomm.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hcc-bench/measure/team.h"

namespace hcomm::bench {

// Throws unless result is success. `what`: "all_reduce".
void require(hcommResult_t result, hcommComm_t comm, std::string_view what);

// The rank that a launcher gave this process, -1: none. Known before the communicator is.
int launched_rank();
// How many processes a launcher says it started, 0: no launcher. `from`: the variable that says so.
int launched_size(std::string& from);

class World : public Team {
 public:
  struct Member {
    char host[64];
  };

  World();  // joins; throws unavailable when the job has more processes than the world has ranks
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void barrier() override;
  void maximum(std::span<double> values) override;
  double maximum(double value);
  uint64_t sum(uint64_t value);
  // What rank 0 does alone and may fail, as opening a file: then it throws what that threw, and all
  // others leave as well.
  void on_rank_0(const std::function<void()>& body);

  hcommComm_t comm() const { return comm_.get(); }
  int local_ranks() const;  // on this rank's host
  int hosts() const;
  std::string hosts_text() const;  // "n01:4 n02:4"
  double init_seconds() const { return init_seconds_; }
  double memory_mib() const { return memory_mib_; }  // that joining took, of the largest rank

 private:
  struct Leave {
    void operator()(hcommComm_t comm) const { hcommCommDestroy(comm); }
  };
  std::unique_ptr<std::remove_pointer_t<hcommComm_t>, Leave> comm_;
  int rank_ = 0, ranks_ = 1;
  std::vector<Member> members_;
  double init_seconds_ = 0, memory_mib_ = 0;
};

}  // namespace hcomm::bench
