// SPDX-License-Identifier: Apache-2.0
// Binding, as the ranks see it.
#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <sstream>

#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

std::set<int> own_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::set<int> cores;
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &mask)) cores.insert(core);
  return cores;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return {lines.begin(), lines.end()};
}

TEST(LaunchAffinity, AFF_01_UnboundKeepsTheMask) {
  const std::string core = std::to_string(*own_cores().rbegin());
  Launch run({"-n", "2", probe(), "cores"});
  run.prefix({"taskset", "-c", core});
  EXPECT_EQ(sorted_lines(run.finish().out), (std::vector<std::string>{"0:" + core, "1:" + core}));
}

TEST(LaunchAffinity, AFF_01_NeverOutsideTheMask) {
  const std::string core = std::to_string(*own_cores().rbegin());
  for (const std::string how : {"core", "numa"}) {
    Launch run({"--bind-to", how, "-n", "4", probe(), "cores"});
    const Result result = run.prefix({"taskset", "-c", core}).finish();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(sorted_lines(result.out),
              (std::vector<std::string>{"0:" + core, "1:" + core, "2:" + core, "3:" + core}));
    EXPECT_EQ(result.err.find("share a core") != std::string::npos, how == "core") << result.err;
  }
}

TEST(LaunchAffinity, AFF_01_ListOutsideTheMaskIsRefused) {
  const Result result = launch({"--bind-to", "list:0;4095", "-n", "2", "true"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("core 4095 for rank 1 is not among the cores"), std::string::npos)
      << result.err;
  EXPECT_EQ(launch({"--bind-to", "list:0", "-n", "2", "true"}).code, 2);
  EXPECT_EQ(launch({"--bind-to", "list:0-", "-n", "1", "true"}).code, 2);
  EXPECT_EQ(launch({"--bind-to", "socket", "-n", "1", "true"}).code, 2);
}

// The share of a rank is the same rule for every number of ranks.
TEST(LaunchAffinity, AFF_01_OneRuleForEveryNumberOfRanks) {
  const size_t cores = own_cores().size();
  for (const int ranks : {1, 2, 3}) {
    const Result result =
        launch({"-q", "--bind-to", "core", "-n", std::to_string(ranks), probe(), "cores"});
    std::set<std::string> shares;
    for (const std::string& line : sorted_lines(result.out)) shares.insert(line.substr(2));
    EXPECT_EQ(shares.size(), std::min<size_t>(cores, static_cast<size_t>(ranks))) << result.out;
  }
}

TEST(LaunchAffinity, ShowBindingsTellsWhatTheRankHas) {
  const std::string core = std::to_string(*own_cores().begin());
  Result result =
      launch({"--show-bindings", "--bind-to", "list:" + core, "-n", "1", "sleep", "0.2"});
  EXPECT_NE(result.err.find("cores " + core + "\n"), std::string::npos) << result.err;
  result = launch({"--show-bindings", "-n", "1", "sleep", "0.2"});
  EXPECT_NE(result.err.find("(not bound)"), std::string::npos) << result.err;
}

TEST(LaunchAffinity, TooManyThreadsForTheCoresIsWarnedOf) {
  const std::string core = std::to_string(*own_cores().begin());
  Launch run({"--bind-to", "list:" + core, "true"});
  EXPECT_NE(run.set("OMP_NUM_THREADS=16").finish().err.find("OMP_NUM_THREADS=16 but rank 0"),
            std::string::npos);
}

// Calls about memory are refused, as in some containers: binding does without, and nothing is said.
TEST(LaunchAffinity, AFF_07_DeniedMemoryPolicy) {
  for (const std::string how : {"none", "core", "numa"}) {
    Launch run({"-q", "--bind-to", how, "-n", "2", probe(), "cores"});
    const Result result = run.prefix({probe(), "deny", "numa"}).finish();
    EXPECT_EQ(result.code, 0) << how << result.err;
    EXPECT_EQ(result.err, "") << how;
    EXPECT_EQ(count_of(result.out, "\n"), 2) << how;
  }
}

// No topology to be seen, as in some containers: still within the mask, and nothing is said.
TEST(LaunchAffinity, AFF_07_HiddenNumaNodes) {
  Launch run({"--bind-to", "numa", "-n", "1", probe(), "cores"});
  run.prefix({"unshare", "-m", "sh", "-c",
              "mount -t tmpfs none /sys/devices/system/node 2>/dev/null || exit 77; exec \"$@\"",
              "sh"});
  const Result result = run.finish();
  if (result.code == 77 || result.err.find("unshare") != std::string::npos)
    GTEST_SKIP() << "mount namespaces are not allowed here";
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace hcomm::launch_test
