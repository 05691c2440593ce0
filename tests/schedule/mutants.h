// SPDX-License-Identifier: Apache-2.0
// Small faults put into the schedules of a collective, as an author's slip would: a step left out,
// a peer or chunk off by one, operands exchanged. Each kind picks its place at random.
#pragma once

#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::schedule {

struct Mutation {
  std::string_view name;
  // Changes one rank's schedule; false when it found nothing to change there.
  bool (*apply)(Schedule& schedule, std::mt19937_64& random);
};
std::span<const Mutation> mutations();

}  // namespace hcomm::schedule
