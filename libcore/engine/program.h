// SPDX-License-Identifier: Apache-2.0
// A program: the schedule of one rank as the executor runs it. Compiling turns needs into counters
// and successor lists, adds the order of messages between two ranks, and fuses, privately: a run of
// reductions into one place becomes one fold over many inputs; a receive whose data is read by one
// fold only becomes an input of that fold, read where the peer's bytes lie. Made once a plan.
//
// Fusing must not depend on what one rank alone knows (in place), because a fold rounds once: runs
// are fused by their form alone. Fusing a receive never changes a result, only who waits for whom:
// it is done where the fold waits for no send of ours.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::engine {

enum class ActionKind : uint8_t { send, receive, copy, fold };

// What an action reads: a slice of ours, or a message as it comes in. Every slice has a place in
// the table of segments that the executor fills once a tile, one entry a chunk.
struct Source {
  schedule::Slice slice;   // when not incoming; else the shape of the message
  uint32_t segment = 0;    // of its first chunk
  int32_t peer = -1;       // incoming from this peer
  uint32_t message = 0;    // its place among the incoming messages
};

struct Action {
  ActionKind kind = ActionKind::copy;
  uint32_t waits = 0;                        // actions that must be done before it starts
  uint32_t first_next = 0, next_count = 0;   // those that wait for it
  uint32_t first_source = 0, source_count = 0;
  uint32_t first_peer = 0, peer_count = 0;   // of a send
  uint32_t first_message = 0;                // of a send: one outgoing message a peer
  uint32_t incoming = 0;                     // how many sources are messages
  schedule::Slice to;
  uint32_t to_segment = 0;
  uint32_t step = 0;  // of the schedule, for reports: the first of those that were fused
  bool result = false;  // writes what this rank does not read again
};

struct Program {
  std::vector<Action> actions;
  std::vector<Source> sources;
  std::vector<uint32_t> peers;
  std::vector<uint32_t> next;
  std::vector<uint32_t> first;      // actions that wait for nothing
  std::vector<schedule::Slice> scratch;
  uint32_t outgoing = 0, incoming = 0, segments = 0, parts = 1;
};

Program compile(const schedule::Schedule& schedule);

}  // namespace hcomm::engine
