// SPDX-License-Identifier: Apache-2.0
// The reading end of the recorder: a snapshot of a rank's area as plain values, taken while the
// rank runs or after it has died. Used by hcc-launch's failure report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/record.h"

namespace hcomm::trace {

struct OpSnapshot {
  uint64_t serial, sequence, count;
  uint32_t communicator, plan, root;
  uint8_t collective, type, op;
  OpState state;
  double begin_us, end_us;  // since the rank's start; end 0: running
};

struct RankSnapshot {
  RankState state = RankState::none;
  int pid = 0;
  uint32_t rank = 0, ranks = 0;  // as its process gave them: of the job, or of a group of its own
  std::string host;
  int waiting_peer = -1;
  double waiting_us = 0;
  uint64_t moved_bytes = 0;  // sent to and received from all peers, whole messages
  std::vector<OpSnapshot> last;  // newest first
};

// `area` points at kAreaBytes of recorder memory. nullopt: the rank never started the library.
std::optional<RankSnapshot> read_rank(const void* area, size_t newest);

}  // namespace hcomm::trace
