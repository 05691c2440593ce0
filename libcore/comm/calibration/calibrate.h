// SPDX-License-Identifier: Apache-2.0
// What the cost model must know of the links and the processors, found when a communicator is made:
// rank 0 takes it from the cache of earlier jobs, or exchanges messages with one peer of each
// transport and times its own kernels; everybody takes its numbers. Where they can be kept it is
// done with care, at most 200 ms; else in some milliseconds. Numbers that could not be measured in
// time are the transports' nominal ones, and are not kept.
#pragma once

#include <span>
#include <string>

#include "base/clock.h"
#include "base/config.h"
#include "comm/control/control.h"
#include "comm/links.h"
#include "schedule/cost.h"

namespace hcomm::comm {

struct CalibrationPlace {
  Circle circle;
  Control* control = nullptr;
  Deadline deadline;
  const Config* config = nullptr;
  std::span<const std::string> hosts;  // the key of each node
  bool crowded = false;                // this rank's node has fewer cores than ranks
};

// Fills machine.links and the costs of local work; the rest of it is set. Returns the transport
// that joins all ranks, "" where several do. Collective: one exchange where the numbers are known,
// two where they are measured.
std::string calibrate(schedule::Machine& machine, Links& links, const CalibrationPlace& place);

}  // namespace hcomm::comm
