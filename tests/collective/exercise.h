// SPDX-License-Identifier: Apache-2.0
// One call of any collective with inputs that are exact in every type, and its check against a
// direct computation: every element, and canaries around the output. Used by the tests of this
// folder; the reference knows nothing of schedules.
#pragma once

#include <cstddef>
#include <string>

#include "algorithm/algorithm.h"
#include "datatype/types.h"
#include "schedule/schedule.h"
#include "collective/world.h"

namespace hcomm::test {

struct Exercise {
  schedule::Collective collective = schedule::Collective::all_reduce;
  bool varied = false, in_place = false;  // each rank may choose in_place for itself
  Type type = Type::float32;
  Op op = Op::sum;
  size_t count = 0;  // of a block; of a V collective the mean
  int root = 0;
  bool reversed = false;   // the blocks of a V collective lie in reverse order
  bool both_ways = false;  // of an all-to-all: counts that allow in place

  std::string text() const;
};

bool has_varied(schedule::Collective collective);
// A policy file that forces the algorithm; `more` is added to the rule, e.g. "tile=1000".
std::string rules_for(const algorithm::Algorithm& algorithm, const std::string& more = "");

// Calls and checks; what is wrong becomes a finding of the rank. The bytes of its output (the same
// on all ranks where the collective says so) are appended to `output` when that is not null.
void perform(const Rank& self, const Exercise& exercise, std::string* output = nullptr);

}  // namespace hcomm::test
