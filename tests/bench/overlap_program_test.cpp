// SPDX-License-Identifier: Apache-2.0
// hcc-bench overlap as a process: its options, and short runs on the ranks of hcc-launch. Nothing
// here depends on how long anything takes.
#include <gtest/gtest.h>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

using cli::Json;
using Words = std::vector<std::string>;

const Words kClean = {"HCOMM_RANK",   "HCOMM_SIZE",    "HCOMM_RECORDER_FD", "WORLD_SIZE", "RANK",
                      "SLURM_PROCID", "SLURM_STEP_ID", "PMI_RANK",          "PMI_SIZE"};

Ran overlap(const Words& words, const Words& before = {}, Words environment = {}) {
  Command command{.words = before, .environment = std::move(environment)};
  command.words.insert(command.words.end(), {HCC_BENCH, "overlap"});
  command.words.insert(command.words.end(), words.begin(), words.end());
  command.environment.insert(command.environment.begin(), kClean.begin(), kClean.end());
  command.limit_s = 100;
  return run(command);
}

Ran on_ranks(const std::string& count, const Words& words, Words environment = {}) {
  return overlap(words, {HCC_LAUNCH, "-n", count, "--label", "none", "--grace", "60s"},
                 std::move(environment));
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(BenchOverlap, HelpIsItsOwn) {
  const Ran ran = overlap({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(holds(ran.out, "usage: hcc-bench overlap")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "--progress-every")) << ran.out;
  EXPECT_FALSE(holds(ran.out, "--redop")) << ran.out;
  EXPECT_TRUE(holds(run({HCC_BENCH, "--help"}).out, "\n  overlap "));
}

TEST(BenchOverlap, BadInputIsRefused) {
  for (const Words& words : std::vector<Words>{{"--operation", "alreduce"},
                                               {"--operation", "barrier"},
                                               {"--operation", "allreduce,pingpong"},
                                               {"--sizes", "0"},
                                               {"--sizes", "64T"},
                                               {"--progress", "thread"},
                                               {"--progress-every", "0"},
                                               {"--rounds", "0"},
                                               {"--format", "ndjson"},
                                               {"allreduce"}}) {
    const Ran ran = overlap(words);
    EXPECT_EQ(ran.code, 2) << words.front() << ran.out;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("hcc-bench: ")) << ran.err;
  }
  EXPECT_EQ(run({HCC_BENCH, "allreduce", "overlap"}).code, 2);
}

// One rank tells it, none is left waiting.
TEST(BenchOverlap, RanksLeaveTogether) {
  const Ran usage = on_ranks("3", {"--rounds", "0"});
  EXPECT_EQ(usage.code, 2) << usage.err;
  const Ran file = on_ranks("3", {"--sizes", "8", "-o", "/nonexistent/x"});
  EXPECT_EQ(file.code, 3) << file.err;
  EXPECT_TRUE(holds(file.err, "/nonexistent/x")) << file.err;
}

// Every way of progress over every transport; the results are checked by the program.
TEST(BenchOverlap, EveryOperationInEveryWay) {
  for (const char* progress : {"stream", "plan"})
    for (const char* transport : {"shm", "tcp"}) {
      const Ran ran =
          on_ranks("3",
                   {"--operation",
                    "allreduce,reduce,broadcast,allgather,reducescatter,alltoall,gather,"
                    "scatter,alltoallv,sendrecv",
                    "--sizes", "1000,100003", "--rounds", "2", "--progress", progress, "--json"},
                   {std::string("HCOMM_TRANSPORT=") + transport});
      ASSERT_EQ(ran.code, 0) << ran.err;
      const Json json = Json::parse(ran.out);
      EXPECT_EQ(json["schema"], "hcc-bench-overlap");
      EXPECT_EQ(json["end"]["complete"], true);
      ASSERT_EQ(json["rows"].size(), 20U);
      for (const Json& row : json["rows"]) {
        EXPECT_EQ(row["progress"], progress);
        EXPECT_EQ(row["rounds"], 2);
        EXPECT_EQ(row["wrong_elements"], 0);
        const double comm = row["comm_us"], compute = row["compute_us"], both = row["both_us"];
        EXPECT_GT(comm, 0);
        EXPECT_NEAR(row["overlap"].get<double>(), 1 - (both - compute) / comm, 1e-6);
        EXPECT_LE(row["overlap_low"], row["overlap_high"]);
        EXPECT_TRUE(progress == std::string("plan") || row["pieces"] == 1) << row;
      }
    }
}

TEST(BenchOverlap, EveryFormatAlone) {
  const Words words = {"--sizes", "1K,4K", "--rounds", "2"};
  const auto with = [&](const char* format) {
    Words all = words;
    all.push_back(format);
    return overlap(all);
  };
  const Ran table = overlap(words);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(holds(table.out, "overlap%")) << table.out;
  EXPECT_TRUE(holds(table.out, "\nallreduce ")) << table.out;
  EXPECT_TRUE(holds(with("--md").out, "| ---: |"));
  const Ran csv = with("--csv");
  EXPECT_TRUE(csv.out.starts_with("operation,ranks,bytes,progress,")) << csv.out;
  EXPECT_TRUE(holds(csv.out, "\nallreduce,1,4096,stream,")) << csv.out;
}

}  // namespace
}  // namespace hcomm::test
