// SPDX-License-Identifier: Apache-2.0
// Measures what the cost model needs, when a communicator is made: rank 0 exchanges a few messages
// with one peer of each transport and times its own kernels; everybody takes its numbers. Some
// milliseconds; numbers that could not be measured in time are the transports' nominal ones.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "comm/control/control.h"
#include "comm/links.h"
#include "schedule/cost.h"

namespace hcomm::comm {

struct CalibrationPlace {
  Circle circle;
  Control* control = nullptr;
  Deadline deadline;
  bool crowded = false;
};

// Fills machine.links and the costs of local work; machine.ranks and node are set. Collective.
void calibrate(schedule::Machine& machine, Links& links, const CalibrationPlace& place);

}  // namespace hcomm::comm
