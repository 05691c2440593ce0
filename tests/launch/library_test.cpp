// SPDX-License-Identifier: Apache-2.0
// The launcher with ranks that use the library.
#include <gtest/gtest.h>

#include <csignal>

#include "launch/launch_run.h"
#include "support/shell.h"

namespace hcomm::launch_test {
namespace {

bool has(const std::string& text, std::string_view what) {
  return text.find(what) != text.npos;
}

TEST(LaunchLibrary, RanksFindOneAnother) {
  const Result result = launch({"-n", "4", LIBRARY_PROBE, "sum"});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
}

TEST(LaunchLibrary, EXI_01_KillOfLauncherDuringACollectiveThatNeverCompletes) {
  Launch run({"-n", "4", LIBRARY_PROBE, "absent"});
  ASSERT_TRUE(run.wait_for("ready", 4));
  run.signal(SIGKILL);
  run.finish();
  EXPECT_TRUE(run.nothing_left(5));
}

TEST(LaunchLibrary, AFF_07_DeniedMemoryPolicy) {
  Launch run({"-n", "2", LIBRARY_PROBE, "sum"});
  const Result result = run.prefix({probe(), "deny", "numa"}).finish();
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
}

// In the middle of operations over shared memory; 2 times, or HCOMM_TEST_ROUNDS.
TEST(LaunchLibrary, SHM_05_KillOfLauncherLeavesNothing) {
  const auto entries = [] { return test::shell("ls -A /dev/shm | grep -i hcomm").output; };
  const std::string before = entries();
  for (int i = 0; i < rounds(2); i++) {
    Launch run({"-n", "4", LIBRARY_PROBE, "busy"});
    run.set("HCOMM_TRANSPORT=shm");
    ASSERT_TRUE(run.wait_for("ready", 4));
    run.signal(SIGKILL);
    run.finish();
    ASSERT_TRUE(run.nothing_left(5)) << "round " << i;
  }
  EXPECT_EQ(entries(), before);
}

// 4 rounds, or HCOMM_TEST_ROUNDS, for each number of ranks.
TEST(LaunchLibrary, EXI_07_AllExitAtOnceAfterInit) {
  for (const std::string ranks : {"2", "4"})
    for (int i = 0; i < rounds(4); i++) {
      const Result result = launch({"-q", "-n", ranks, LIBRARY_PROBE, "init-exit"});
      ASSERT_EQ(result.code, 3) << "round " << i << "\n" << result.out << result.err;
    }
}

TEST(LaunchLibrary, SumsAreRight) {
  const Result result = launch({"-n", "4", LIBRARY_PROBE, "check"});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_EQ(count_of(result.out, " of 4: right"), 4) << result.out;
}

// The C API under a launcher of others; over each transport.
void sums_under(const std::string& launcher) {
  const test::Ran starts = test::shell(launcher + " true");
  if (starts.code == 127) GTEST_SKIP() << launcher << ": not installed";
  if (starts.code != 0) GTEST_SKIP() << launcher << " starts nothing here: " << starts.output;
  for (const std::string transport : {"shm", "tcp"}) {
    const test::Ran ran = test::shell("export HCOMM_TRANSPORT=" + transport + "; " + launcher +
                                      " " + LIBRARY_PROBE + " check");
    EXPECT_EQ(ran.code, 0) << transport << "\n" << ran.output;
    for (int rank = 0; rank < 4; rank++)
      EXPECT_TRUE(ran.says("rank " + std::to_string(rank) + " of 4: right")) << ran.output;
  }
}

TEST(LaunchLibrary, SumsUnderOpenMpi) {
  sums_under("mpirun.openmpi --allow-run-as-root --oversubscribe -x HCOMM_TRANSPORT -n 4");
}

TEST(LaunchLibrary, SumsUnderMpich) {
  sums_under("mpiexec.hydra -n 4");
}

TEST(LaunchLibrary, EXI_09_OneExitsBeforeItsFirstCollective) {
  Launch run({"-n", "4", LIBRARY_PROBE, "leave"});
  const Result result = run.finish();
  EXPECT_EQ(result.code, 7) << result.out << result.err;
  EXPECT_LT(result.seconds, 5);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchLibrary, EXI_11_OneLeavesBeforeInit) {
  Launch run({"-n", "3", LIBRARY_PROBE, "sum", ":", "-n", "1", "true"});
  const Result result = run.finish();
  EXPECT_EQ(result.code, 124) << result.out << result.err;
  EXPECT_TRUE(has(result.err, "rank 3 left before init")) << result.err;
  EXPECT_LT(result.seconds, 5);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchLibrary, TheReportNamesTheLastOperationOfTheRankThatFailed) {
  Launch run({"-n", "2", LIBRARY_PROBE, "absent"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGTERM);
  EXPECT_EQ(run.finish().code, 128 + SIGTERM);
  const Result result = launch({"--timeout", "3s", "-n", "2", LIBRARY_PROBE, "absent"});
  EXPECT_EQ(result.code, 124);
  EXPECT_TRUE(has(result.err, ": last operation: all_reduce #1, 65536 x float32 (256KiB) max"))
      << result.err;
}

}  // namespace
}  // namespace hcomm::launch_test
