// SPDX-License-Identifier: Apache-2.0
// From options to a job: programs found, ranks numbered, cores dealt out, environments made. What
// is wrong with the command line is refused here, also by --dry-run, before anything has started;
// what the system refuses (a folder that cannot be made, too few descriptors) is found by front.
// Used by main.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "hcc-launch/job.h"
#include "hcc-launch/options.h"

namespace hcomm::launch {

// The job cannot start as it is asked for; the exit code says how (126, 127).
struct PlanFailure {
  int exit_code;
  std::string text;
};

// `warn` is told what is odd but harmless. Throws PlanFailure, or Error (invalid_argument for what
// the user can mend).
Job make_job(const Options& options, std::span<const char* const> environment,
             const std::function<void(std::string)>& warn);

// --dry-run: a line for each rank.
std::string describe(const Job& job);

}  // namespace hcomm::launch
