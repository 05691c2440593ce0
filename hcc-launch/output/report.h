// SPDX-License-Identifier: Apache-2.0
// What became of a job, as text: the box for people on standard error, and job.json. Used by front,
// when all has ended. It reads what the ranks left in the recorder's memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "hcc-launch/job.h"
#include "hcc-launch/options.h"
#include "hcc-launch/verdict.h"

namespace hcomm::launch {

inline constexpr size_t kTailLines = 20, kTailColumns = 2000;

struct JobRecord {
  const Options& options;
  const Job& job;
  const Verdict& verdict;
  std::function<const void*(uint32_t rank)> area;  // of the recorder
  std::vector<pid_t> pids;                         // by rank, -1: never started
  std::vector<std::deque<std::string>> tails;      // last lines of standard error
  int64_t start_ns = 0, start_wall_ns = 0;
};

std::string seconds_text(int64_t ms);  // "2.5 s"

// "" for a job that ended well. Ends in a newline.
std::string failure_box(const JobRecord& record, const cli::Painter& painter);
std::string failure_line(const JobRecord& record);  // for --quiet
std::string json_report(const JobRecord& record);

}  // namespace hcomm::launch
