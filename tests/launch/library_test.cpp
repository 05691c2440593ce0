// SPDX-License-Identifier: Apache-2.0
// The launcher with ranks that use the library.
#include <gtest/gtest.h>

#include <csignal>

#include "launch/launch_run.h"

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

TEST(LaunchLibrary, EXI_07_AllExitAtOnceAfterInit) {
  for (int i = 0; i < rounds(5); i++) {
    const Result result = launch({"-q", "-n", "2", LIBRARY_PROBE, "init-exit"});
    ASSERT_EQ(result.code, 3) << "round " << i << "\n" << result.out << result.err;
  }
}

TEST(LaunchLibrary, EXI_09_OneExitsBeforeItsFirstCollective) {
  Launch run({"-n", "4", LIBRARY_PROBE, "leave"});
  const Result result = run.finish();
  EXPECT_EQ(result.code, 7) << result.out << result.err;
  EXPECT_LT(result.seconds, 10);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchLibrary, EXI_11_OneLeavesBeforeInit) {
  Launch run({"-n", "3", LIBRARY_PROBE, "sum", ":", "-n", "1", "true"});
  const Result result = run.finish();
  EXPECT_EQ(result.code, 124) << result.out << result.err;
  EXPECT_TRUE(has(result.err, "rank 3 left before init")) << result.err;
  EXPECT_LT(result.seconds, 15);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchLibrary, TheReportNamesTheLastOperationOfTheRankThatFailed) {
  Launch run({"-n", "2", LIBRARY_PROBE, "absent"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGTERM);
  EXPECT_EQ(run.finish().code, 128 + SIGTERM);
  const Result result = launch({"--timeout", "3s", "-n", "2", LIBRARY_PROBE, "absent"});
  EXPECT_EQ(result.code, 124);
  EXPECT_TRUE(has(result.err, "rank 1: last operation: all_reduce #")) << result.err;
}

}  // namespace
}  // namespace hcomm::launch_test
