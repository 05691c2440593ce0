// SPDX-License-Identifier: Apache-2.0
// Time over size as a drawing: a panel for each transport, number of ranks and operation, both axes
// logarithmic, a line a library. SVG with nothing loaded from elsewhere.
#pragma once

#include <span>
#include <string>

#include "hcc-bench/compare/result.h"

namespace hcomm::compare {

// Of each cell the state with the most turns. Barriers have no size and no panel.
std::string plot(std::span<const Cell> cells);

}  // namespace hcomm::compare
