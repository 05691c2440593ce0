// SPDX-License-Identifier: Apache-2.0
// Who takes part in one cell of a sweep over plans. Of each algorithm many tiles and windows could
// run; a heat, all of them in turn, finds the one that serves it best, and the winners meet the
// choice in a match that measures them anew: who was lucky in a heat is not believed.
#pragma once

#include <vector>

#include "hcc-bench/choice/match.h"

namespace hcomm::choice {

// The choice, and the winner of each heat. Collective; the same on all ranks.
std::vector<Contender> finalists(bench::Session& session, const bench::Sweep& sweep,
                                 const bench::Buffers& buffers, size_t bytes);

}  // namespace hcomm::choice
