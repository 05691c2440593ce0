// SPDX-License-Identifier: Apache-2.0
// The gradients on their way through the team, in buckets: each is summed as soon as its gradients
// are there, while the rest of them is computed (Li et al., PyTorch Distributed, VLDB 2020), and
// is waited for when its weights are used again, the first layer's first (Jayarajan et al.,
// Priority-based parameter propagation, MLSys 2019).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "team.h"

namespace train {

class Exchange {
 public:
  using Clock = std::chrono::steady_clock;
  // What is done with a bucket when it is summed: gradients [first, last).
  using Use = std::function<void(size_t first, size_t last)>;

  // Collective. Buckets of this many gradients; 0: one of all. `team` and `gradients` outlive it.
  Exchange(Team& team, std::span<float> gradients, size_t bucket, Use use);

  // The gradients from `first` on are complete: once a step down to 0, on all ranks alike.
  void ready(size_t first);
  // To be called often while something is computed.
  void progress();
  // Those before `last` are used now: waits for their sums.
  void need(size_t last);

  // While it is mute nothing is sent, and what is used are the gradients of this rank. Only when
  // all are used.
  void set_mute(bool mute) { mute_ = mute; }
  // In the calls above since the last call of this one.
  Clock::duration take_time() { return std::exchange(time_, {}); }

 private:
  size_t first_of(size_t bucket) const;

  Team& team_;
  Use use_;
  size_t gradients_, bucket_, buckets_;
  // Of this step: buckets from started_ on have been started, those before used_ are used.
  size_t started_ = 0, used_;
  bool mute_ = false;
  Clock::duration time_{};
  Clock::time_point progressed_{};
};

}  // namespace train
