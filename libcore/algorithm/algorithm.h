// SPDX-License-Identifier: Apache-2.0
// Algorithms: pure functions from a shape to the schedule of one rank, one file a family, one line
// in algorithms.def. They know no bytes, no transport, no device. policy/ chooses among them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schedule/builder.h"

namespace hcomm::algorithm {

struct Algorithm {
  std::string_view name;  // "ring"; unique among those of one collective
  schedule::Collective collective;
  schedule::Order order;    // rank: usable in deterministic mode
  std::string_view source;  // of the method: "Rabenseifner 2004", for docs and `hcc plan`
  // Independent of rank and in_place.
  bool (*fits)(const schedule::Shape& shape);
  void (*build)(schedule::Builder& builder);
};

// All of them, in the order of algorithms.def.
std::span<const Algorithm> all();
const Algorithm* find(schedule::Collective collective, std::string_view name);

schedule::Schedule build(const Algorithm& algorithm, const schedule::Shape& shape);
// The schedules of all ranks (in_place of the shape for each): for check, cost, tests.
std::vector<schedule::Schedule> build_all(const Algorithm& algorithm, schedule::Shape shape);

}  // namespace hcomm::algorithm
