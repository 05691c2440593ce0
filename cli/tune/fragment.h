// SPDX-License-Identifier: Apache-2.0
// What hcc tune writes: a fragment of policy.conf(5), or JSON. Pure functions over what was
// measured.
#pragma once

#include <string>

#include "cli/json.h"
#include "cli/tune/result.h"

namespace hcomm::tune {

// Where and when; one line.
struct Origin {
  std::string tool, host, time;  // "hcc 0.1.0 (abc)", "node7", "2026-01-31T12:00:00Z"
};

// Comments tell of the machine and of each series; a rule stands only where the cost model's choice
// is surely worse than the best plan by more than 5 %.
std::string fragment(const Measured& measured, const Origin& origin);
cli::Json document_json(const Measured& measured, const Origin& origin);

// The links and the processor, a line each, for people.
std::string machine_text(const Measured& measured);

}  // namespace hcomm::tune
