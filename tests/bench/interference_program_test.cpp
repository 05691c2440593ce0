// SPDX-License-Identifier: Apache-2.0
// hcc-bench interference as a process: its options, and short runs on the ranks of hcc-launch.
// Nothing here depends on how long anything takes.
#include <gtest/gtest.h>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

using cli::Json;
using Words = std::vector<std::string>;

Ran interference(const Words& words, const Words& before = {}, const Words& environment = {}) {
  Command command{.words = before, .environment = environment};
  command.words.insert(command.words.end(), {HCC_BENCH, "interference"});
  command.words.insert(command.words.end(), words.begin(), words.end());
  for (const char* name : {"HCOMM_RANK", "HCOMM_SIZE", "HCOMM_RECORDER_FD"})
    command.environment.insert(command.environment.begin(), name);
  command.limit_s = 100;
  return run(command);
}

Ran on_ranks(const std::string& count, const Words& words, const Words& environment = {}) {
  return interference(words, {HCC_LAUNCH, "-n", count, "--label", "none", "--grace", "60s"},
                      environment);
}

TEST(BenchInterference, BadInputIsRefused) {
  for (const Words& words : std::vector<Words>{{"--operation", "alreduce"},
                                               {"--operation", "pingpong"},
                                               {"--operation", "allreduce,reduce"},
                                               {"--load", "0"},
                                               {"--load", "1M,2M"},
                                               {"--samples", "99"},
                                               {"--every", "soon"},
                                               {"allreduce"}}) {
    const Ran ran = interference(words);
    EXPECT_EQ(ran.code, 2) << words.front() << ran.out;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("hcc-bench: ")) << ran.err;
  }
  EXPECT_EQ(on_ranks("2", {"--load", "64K", "-o", "/nonexistent/x"}).code, 3);
}

// Loads end after the same number on every rank, whatever each of them saw; all is checked.
TEST(BenchInterference, EveryTransportWithBothPriorities) {
  for (const char* transport : {"shm", "tcp"})
    for (const char* operation : {"allreduce", "alltoallv", "barrier"}) {
      const Ran ran = on_ranks("3",
                               {"--operation", operation, "--sizes", "1000", "--load", "100003",
                                "--samples", "100", "--every", "0", "--json"},
                               {std::string("HCOMM_TRANSPORT=") + transport});
      ASSERT_EQ(ran.code, 0) << ran.err;
      const Json json = Json::parse(ran.out);
      EXPECT_EQ(json["schema"], "hcc-bench-interference");
      EXPECT_EQ(json["end"]["complete"], true);
      ASSERT_EQ(json["rows"].size(), 2U);
      EXPECT_EQ(json["rows"][0]["priorities"], "ordered");
      EXPECT_EQ(json["rows"][1]["priorities"], "equal");
      for (const Json& row : json["rows"]) {
        EXPECT_EQ(row["operation"], operation);
        EXPECT_EQ(row["samples"], 100);
        EXPECT_EQ(row["wrong_elements"], 0);
        EXPECT_GT(row["loads_per_s"], 0);
        EXPECT_LE(row["alone_p50_us"], row["alone_p99_us"]);
        EXPECT_NEAR(row["p99_ratio"].get<double>() * row["alone_p99_us"].get<double>(),
                    row["loaded_p99_us"].get<double>(), 1e-3);
      }
    }
}

TEST(BenchInterference, ATableAndCsvOfOneRank) {
  const Words words = {"--load", "4K", "--samples", "100", "--every", "0"};
  const Ran table = interference(words);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("p99 ratio"), std::string::npos) << table.out;
  Words csv = words;
  csv.push_back("--csv");
  EXPECT_TRUE(interference(csv).out.starts_with("operation,ranks,bytes,load_bytes,"));
}

}  // namespace
}  // namespace hcomm::test
