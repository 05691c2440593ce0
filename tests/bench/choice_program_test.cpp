// SPDX-License-Identifier: Apache-2.0
// hcc-bench --sweep as the ranks of hcc-launch: what is forced runs, and is right.
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

using cli::Json;
using Words = std::vector<std::string>;

const Words kClean = {"HCOMM_RANK", "HCOMM_SIZE",   "HCOMM_RECORDER_FD", "HCOMM_ALGO", "WORLD_SIZE",
                      "RANK",       "SLURM_PROCID", "SLURM_STEP_ID",     "PMI_RANK",   "PMI_SIZE"};

// Too few rounds for a verdict of time: the exit code is that of the checks.
const Words kQuick = {"--sweep", "algo", "--rounds", "2", "--iters", "2", "--warmup", "1"};

Command ranks(int count, Words words, Words environment = {}) {
  Command command;
  command.words = {HCC_LAUNCH, "-n",     std::to_string(count), "--label", "none", "--grace",
                   "60s",      HCC_BENCH};
  command.words.insert(command.words.end(), words.begin(), words.end());
  command.environment = kClean;
  command.environment.insert(command.environment.end(), environment.begin(), environment.end());
  command.limit_s = 100;
  return command;
}

Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(SweepRanks, EachPlanIsOfItsAlgorithmAndTheChoiceIsAmongThem) {
  const Ran ran =
      run(ranks(3, with({"allreduce,broadcast,barrier", "--sizes", "8,100003", "--json"}, kQuick)));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["cells"].size(), 2u + 2 + 1);
  for (const Json& cell : json["cells"]) {
    const Json& plans = cell["plans"];
    ASSERT_GE(plans.size(), 3u) << cell;
    EXPECT_TRUE(plans[0]["forced"].is_null());
    std::set<std::string> forced;
    for (size_t i = 1; i < plans.size(); i++) {
      const std::string algorithm = plans[i]["forced"], plan = plans[i]["plan"];
      EXPECT_EQ(plan.substr(0, plan.find(' ')), algorithm);
      EXPECT_TRUE(forced.insert(algorithm).second) << algorithm;
    }
    const std::string chosen = plans[0]["plan"];
    EXPECT_TRUE(forced.contains(chosen.substr(0, chosen.find(' ')))) << cell;
    for (const Json& plan : plans) {
      EXPECT_EQ(plan["turns_us"].size(), 2u);
      EXPECT_EQ(plan["wrong_elements"], 0);
    }
  }
}

TEST(SweepRanks, OfPlansEachAlgorithmHasATileAndAWindow) {
  const Ran ran = run(ranks(2, {"allreduce", "--sizes", "1K,256K", "--sweep", "plan", "--rounds",
                                "2", "--iters", "2", "--warmup", "1", "--json"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["cells"].size(), 2u);
  for (const Json& cell : json["cells"]) {
    ASSERT_GE(cell["plans"].size(), 3u);
    EXPECT_TRUE(cell["plans"][0]["actions"].is_null());
    std::set<std::string> forced;
    for (size_t i = 1; i < cell["plans"].size(); i++) {
      const std::string actions = cell["plans"][i]["actions"], plan = cell["plans"][i]["plan"];
      EXPECT_TRUE(forced.insert(cell["plans"][i]["forced"]).second) << "one of each algorithm";
      EXPECT_EQ(cell["plans"][i]["wrong_elements"], 0);
      const bool cut = holds(actions, "tile=128KiB, window=");
      EXPECT_EQ(holds(plan, " tile=128KiB window="), cut) << plan << actions;
      EXPECT_EQ(holds(actions, "tile="), cell["bytes"] == 256 * 1024) << actions;
    }
  }
}

// Bruck's blocks must be equal: what does not fit is left out, not measured as another.
TEST(SweepRanks, WhatCannotRunIsLeftOut) {
  const auto forced = [](const char* operation) {
    const Ran ran = run(ranks(3, with({operation, "--sizes", "4K", "--json"}, kQuick)));
    const Json json = Json::parse(ran.out);
    std::set<std::string> names;
    for (const Json& plan : json["cells"][0]["plans"])
      if (plan["forced"].is_string()) names.insert(plan["forced"].get<std::string>());
    return names;
  };
  EXPECT_TRUE(forced("alltoall").contains("bruck"));
  EXPECT_FALSE(forced("alltoallv").contains("bruck"));
}

TEST(SweepRanks, EveryOperationThatHasAlgorithms) {
  const Ran ran = run(ranks(2, with({"all", "--sizes", "1000", "--csv"}, kQuick)));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"allgatherv", "alltoall", "barrier", "gather", "scatterv"})
    EXPECT_TRUE(holds(ran.out, std::string("\n") + name + ",")) << name << ran.out;
  EXPECT_FALSE(holds(ran.out, "pingpong"));
}

TEST(SweepRanks, OfItselfAlone) {
  const Ran ran = run(Command{.words = with({HCC_BENCH, "allreduce", "--sizes", "8"}, kQuick),
                              .environment = kClean});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "# choice within 5 % of the best")) << ran.out;
}

TEST(SweepRanks, UsageErrors) {
  const auto alone = [](Words words, Words environment = {}) {
    words.insert(words.begin(), HCC_BENCH);
    return run(Command{.words = std::move(words), .environment = with(kClean, environment)});
  };
  for (const Words& words : std::vector<Words>{{"allreduce", "--sweep"},
                                               {"allreduce", "--sweep", "tiles"},
                                               {"allreduce", "--rounds", "3"},
                                               {"allreduce", "--sweep", "algo", "--rounds", "1"},
                                               {"allreduce", "--sweep", "algo", "--self-test"},
                                               {"allreduce", "--sweep", "algo", "--check", "all"},
                                               {"allreduce", "--sweep", "algo", "--save", "x"},
                                               {"startup", "--sweep", "algo"},
                                               {"sendrecv", "--sweep", "algo"}}) {
    const Ran ran = alone(words);
    EXPECT_EQ(ran.code, 2) << words.back() << ran.out << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const Ran outranked = alone({"allreduce", "--sweep", "algo"}, {"HCOMM_ALGO=ring"});
  EXPECT_EQ(outranked.code, 2);
  EXPECT_EQ(alone({"allreduce", "--sweep", "plan"}, {"HCOMM_TILE=1M"}).code, 2);
  EXPECT_TRUE(holds(outranked.err, "HCOMM_ALGO")) << outranked.err;
}

TEST(SweepRanks, InterruptedDocumentsAreValid) {
  Command command = ranks(2, {"allreduce", "--sweep", "algo", "--sizes", "8,16,32", "--min-time",
                              "1000s", "--max-time", "1000s", "--json"});
  command.signal = SIGINT;
  command.signal_after = "\"schema\"";
  const Ran ran = run(command);
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["end"]["complete"], false) << ran.out;
}

TEST(SweepRanks, AnOutputThatCannotBeMadeIsRank0sFault) {
  const Ran ran =
      run(ranks(3, with({"allreduce", "--sizes", "8", "-o", "/nonexistent/x"}, kQuick)));
  EXPECT_EQ(ran.code, 3) << ran.err;
}

}  // namespace
}  // namespace hcomm::test
