// SPDX-License-Identifier: Apache-2.0
// The checker: proves a collective from the schedules of all its ranks, without running it. It
// trusts neither algorithm nor Builder: order comes from the needs alone. It proves
//  1. matching: every send meets one receive of the same chunks' lengths, in channel order, every
//     receive one send;
//  2. no deadlock, even when a send completes only at its receive, with tiles of one window slot
//     following one another;
//  3. no race: two steps that touch the same memory, one writing (a peer that reads a sender's
//     memory included; in place, input and output that are the same memory), are ordered by needs;
//  4. meaning, as expression trees: every contribution once, none missing, the same tree on all
//     ranks, a left fold in rank order where claimed; no output written where there is none, no
//     input written (other than in place).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "schedule/schedule.h"

namespace hcomm::schedule {

struct CheckOptions {
  uint32_t credits = 0;  // messages that a channel holds beyond the one being received
  uint32_t tiles = 2;    // that follow one another in one window slot
};

struct Report {
  bool ok = true;
  std::string finding;  // the first fault: rank, step, peer, what was expected and seen
  size_t steps = 0;     // of all ranks
};

// all[i] is the schedule of rank i. Time and memory grow with the sum of their steps.
Report check(std::span<const Schedule> all, const CheckOptions& options = {});

}  // namespace hcomm::schedule
