// SPDX-License-Identifier: Apache-2.0
// Schedules as text. The 4-rank dumps of every algorithm are golden files: a change of an algorithm
// is reviewed as a change of its dump.
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace hcomm::schedule {

// One step, without its needs: "reduce out[1] = in[1] + tmp[0]", "send in[0..3] to 1,2".
std::string step_text(const Schedule& schedule, const Step& step);
// One line a step: "  3 reduce  out[1] = in[1] + tmp[0]      after 2".
std::string dump(const Schedule& schedule);
// All ranks as one Graphviz digraph: a cluster a rank, needs solid, messages dashed.
std::string dump_dot(std::span<const Schedule> all);

}  // namespace hcomm::schedule
