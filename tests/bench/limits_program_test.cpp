// SPDX-License-Identifier: Apache-2.0
// hcc-bench limits as a process: its options, and a run as short as there is. Nothing here depends
// on how long anything takes.
#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

using cli::Json;
using Words = std::vector<std::string>;

Ran limits(Words words, Words environment = {}) {
  words.insert(words.begin(), {HCC_BENCH, "limits"});
  for (const char* name : {"HCOMM_RANK", "HCOMM_SIZE", "WORLD_SIZE", "RANK", "SLURM_PROCID",
                           "SLURM_STEP_ID", "PMI_RANK", "PMI_SIZE"})
    environment.emplace(environment.begin(), name);
  return run(Command{.words = std::move(words), .environment = std::move(environment)});
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(BenchLimits, HelpIsItsOwn) {
  const Ran ran = limits({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(holds(ran.out, "usage: hcc-bench limits")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "--sections")) << ran.out;
  EXPECT_FALSE(holds(ran.out, "--redop")) << ran.out;
  EXPECT_TRUE(holds(run({HCC_BENCH, "--help"}).out, "\n  limits "));
}

TEST(BenchLimits, BadInputIsRefused) {
  for (const Words& words : std::vector<Words>{{"--sections", "disk"},
                                               {"--sections", ""},
                                               {"--min-time", "soon"},
                                               {"--format", "ndjson"},
                                               {"--json", "--csv"},
                                               {"--redop", "sum"},
                                               {"allreduce"}}) {
    const Ran ran = limits(words);
    EXPECT_EQ(ran.code, 2) << words.front() << ran.out;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("hcc-bench: ")) << ran.err;
  }
  EXPECT_TRUE(holds(limits({"--sections", "memori"}).err, "did you mean memory?"));
  EXPECT_EQ(run({HCC_BENCH, "allreduce", "limits"}).code, 2);
  EXPECT_EQ(limits({"-o", "/nonexistent/x", "--sections", "cores"}).code, 3);
}

TEST(BenchLimits, RanksOfALauncherAreRefused) {
  const Words second = {"HCOMM_RANK=1", "HCOMM_SIZE=2"}, first = {"HCOMM_RANK=0", "HCOMM_SIZE=2"};
  EXPECT_EQ(limits({"--sections", "cores"}, second).err, "");
  const Ran ran = limits({"--sections", "cores"}, first);
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(holds(ran.err, "without a launcher")) << ran.err;
}

// Every section but the one whose buffers are large.
TEST(BenchLimits, AShortRunHasEveryLimit) {
  const Ran ran = limits({"--sections", "cores,exchange,tcp", "--min-time", "1ms", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["schema"], "hcc-bench-limits");
  std::set<std::string> names;
  for (const Json& limit : json["limits"]) {
    names.insert(limit["name"].get<std::string>());
    const bool there = limit["absent"].is_null();
    EXPECT_EQ(limit["best_us"].is_number(), there) << limit;
    if (there) {
      EXPECT_GT(limit["best_us"].get<double>(), 0) << limit;
      EXPECT_GE(limit["p50_us"], limit["best_us"]) << limit;
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"line", "wake_by_futex", "wake_by_eventfd", "yield_one_core",
                                   "futex_one_core", "system_call", "clock", "ticks", "barrier",
                                   "process_vm_readv", "tcp_half_round_trip",
                                   "tcp_half_round_trip_asleep", "tcp_one_way", "tcp_both_ways"}));
}

// An all-reduce that gives something else than the sum fails the run.
TEST(BenchLimits, LargeBuffersToo) {
  const Ran ran = limits({"--sections", "memory,allreduce", "--min-time", "0", "--csv"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"\nmemory,copy,16384,1,", "\nmemory,sum_streaming,",
                           "\nallreduce,direct,4,2,", "\nallreduce,bounce,268435456,2,"})
    EXPECT_TRUE(holds(ran.out, part)) << part << ran.out;
}

TEST(BenchLimits, OneCoreNamesWhatIsAbsent) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; core++)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Ran ran = limits({"--sections", "cores,allreduce,tcp", "--min-time", "1ms", "--json"});
  sched_setaffinity(0, sizeof before, &before);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_TRUE(json["distance"].is_null());
  for (const Json& limit : json["limits"]) {
    const bool pair = limit["section"] != "cores" || limit["name"] == "line" ||
                      limit["name"].get<std::string>().starts_with("wake_");
    EXPECT_EQ(limit["absent"].is_null(), !pair) << limit;
    EXPECT_EQ(limit["best_us"].is_null(), pair) << limit;
  }
}

}  // namespace
}  // namespace hcomm::test
