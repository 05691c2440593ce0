// SPDX-License-Identifier: Apache-2.0
// Measures this node for hcc tune: starts hcc-bench, under hcc-launch where it needs ranks, and
// reads what it writes. One job at a time; whatever happens, none is left when a call returns.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/tune/result.h"

namespace hcomm::tune {

// The programs beside this one.
struct Programs {
  std::string launch, bench;
};
Programs find_programs();  // throws unavailable

// All of its sizes are measured by one start of hcc-bench.
struct Job {
  std::string transport, operation;  // "allreduce", as hcc-bench calls it
  uint32_t ranks = 0;
};

struct Wanted {
  std::vector<uint32_t> ranks;
  std::vector<std::string> operations, transports;
  std::vector<size_t> sizes;
  int64_t time_ns = 0;
};
std::vector<Job> jobs_of(const Wanted& wanted);
// Of all turns of one plan, so that about all jobs end in time.
int64_t time_of_plan_ns(const Wanted& wanted);
// What is run for it, the program first.
std::vector<std::string> command_of(const Programs& programs, const Wanted& wanted, const Job& job);

class Session {
 public:
  // stop: not zero once a signal came; then a call throws aborted.
  Session(Programs programs, const std::atomic<int>& stop)
      : programs_(std::move(programs)), stop_(stop) {}

  Link link(const std::string& transport);
  Work work();
  // Those that were done when the deadline had passed, those that a rule would follow from measured
  // twice. Throws what hcc-bench says it failed of.
  struct Cells {
    std::vector<Cell> list;
    bool complete = false;
  };
  Cells cells(const Wanted& wanted, const Job& job, Deadline deadline);

 private:
  struct Ran {
    int code = 0;
    bool in_time = true;
    std::string output;
  };
  std::string run_short(const std::vector<std::string>& words, const std::string& transport);
  Cells measure(const Wanted& wanted, const Job& job, Deadline deadline);
  Ran run(const std::vector<std::string>& words, const std::string& transport, Deadline deadline);

  Programs programs_;
  const std::atomic<int>& stop_;
};

// The cells of a first run; where the choice seemed worse, what a second run of those sizes says of
// it. What was not measured again is not believed.
std::vector<Cell> confirmed(std::vector<Cell> first, std::span<const Cell> second);

// The cells in the lines of `hcc-bench --sweep plan --ndjson`, whatever stands between them.
std::vector<Cell> parse_cells(const std::string& output, const std::string& transport);

}  // namespace hcomm::tune
