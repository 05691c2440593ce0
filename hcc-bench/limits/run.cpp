// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/limits/run.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "datatype/kernels.h"
#include "hcc-bench/limits/crew.h"
#include "hcc-bench/limits/limit.h"
#include "hcc-bench/limits/report.h"
#include "hcc-bench/measure/memory.h"
#include "hcc-bench/report/facts.h"
#include "hcc-bench/world.h"

namespace hcomm::bench::limits {

namespace {

constexpr struct {
  std::string_view name;
  void (*measure)(const Request&);
} kMeasures[] = {{"memory", measure_memory},
                 {"cores", measure_cores},
                 {"exchange", measure_exchange},
                 {"allreduce", measure_allreduce},
                 {"tcp", measure_tcp}};

// Those that this process may run on, as many as the largest crew has members.
std::vector<int> usable() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) fail_system(errno, "ask for the cores");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < kMostMembers; core++)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace

int run(const Options& options) {
  std::string from;
  if (const int processes = launched_size(from); processes > 1)
    fail(Code::invalid_argument,
         "limits makes its own processes; {} were started ({}): run it without a launcher",
         processes, from);
  std::vector<Limit> measured;
  Sheet sheet(sheet_plan(options,
                         {.facts = machine_facts(),
                          .cores = usable(),
                          .last_level_cache_bytes = last_level_cache_bytes(),
                          .kernels = std::string(kernels_in_force())},
                         measured));
  const Request request{
      .min_time_s = options.min_time_s, .cores = usable(), .add = [&](const Limit& limit) {
        measured.push_back(limit);
        sheet.add(entry_of(limit, options));
      }};
  for (const auto& section : kMeasures)
    if (std::count(options.sections.begin(), options.sections.end(), section.name) > 0)
      section.measure(request);
  sheet.end("");
  return cli::kDone;
}

}  // namespace hcomm::bench::limits
