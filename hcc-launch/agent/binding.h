// SPDX-License-Identifier: Apache-2.0
// Which cores a rank may run on. One rule for every number of ranks: the units (cores or NUMA
// nodes) of the mask that we inherited are dealt out in equal consecutive shares; with more ranks
// than units, neighbours share one. Nothing outside the inherited mask is ever used. Used by plan
// (to choose) and by front (to show what became of it). Absent: binding of memory; a rank's memory
// is on the node of the core that touches it first.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "hcc-launch/agent/number_list.h"

namespace hcomm::launch {

using Cores = Numbers;  // of the operating system

Cores cores_of(pid_t pid);  // by sched_getaffinity; 0: ourselves. Empty when pid is gone
std::vector<unsigned long> mask_of(const Cores& cores);

// The allowed cores grouped by physical core, or by NUMA node, in the machine's order.
enum class Unit : uint8_t { core, numa };
std::vector<Cores> units_of(Unit unit, const Cores& allowed);

// The rule above: a set of cores for each rank. units must not be empty.
std::vector<Cores> divide(const std::vector<Cores>& units, uint32_t ranks);

}  // namespace hcomm::launch
