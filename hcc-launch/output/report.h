// SPDX-License-Identifier: Apache-2.0
// What became of a job, as text: the box for people on standard error, and job.json. Used by front,
// when all has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "hcc-launch/job.h"
#include "hcc-launch/options.h"
#include "hcc-launch/verdict.h"
#include "trace/reader.h"

namespace hcomm::launch {

inline constexpr size_t kTailLines = 20, kTailColumns = 2000;

struct JobRecord {
  const Options& options;
  const Job& job;
  const Verdict& verdict;
  int exit_code = 0;
  std::string start_error, output_error;                   // "": none
  std::vector<std::optional<trace::RankSnapshot>> states;  // by rank, as the job was told to end
  std::vector<std::deque<std::string>> tails;              // last lines of standard error
  std::vector<pid_t> pids;                                 // -1: never started
  int64_t start_ns = 0, start_wall_ns = 0;
};

std::string seconds_text(int64_t ms);  // "2.5 s"

// "" for a job that ended well. Ends in a newline.
std::string failure_box(const JobRecord& record, const cli::Painter& painter);
std::string failure_line(const JobRecord& record);  // for --quiet
std::string json_report(const JobRecord& record);

}  // namespace hcomm::launch
