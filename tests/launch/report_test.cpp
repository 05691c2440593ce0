// SPDX-License-Identifier: Apache-2.0
// The failure report and job.json.
#include <gtest/gtest.h>

#include <csignal>

#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

bool has(const std::string& text, std::string_view what) {
  return text.find(what) != text.npos;
}

TEST(LaunchReport, NamesTheSignalAndTheLastLines) {
  const Result result =
      launch({"-n", "1", "sleep", "60", ":", "-n", "1", probe(), "stderr", "SEGV"});
  EXPECT_EQ(result.code, 128 + SIGSEGV);
  EXPECT_TRUE(has(result.err, "rank 1 failed first: it died of SIGSEGV (11)")) << result.err;
  EXPECT_TRUE(has(result.err, "core: ")) << result.err;
  EXPECT_TRUE(has(result.err, "last lines on standard error (20)")) << result.err;
  EXPECT_EQ(count_of(result.err, "complaint 9\n"), 1) << "only live";
  EXPECT_EQ(count_of(result.err, "complaint 10\n"), 2) << "live, and in the box";
  EXPECT_TRUE(has(result.err, "failed by itself: rank 1")) << result.err;
  EXPECT_TRUE(has(result.err, "ended by hcc-launch: rank 0")) << result.err;
}

TEST(LaunchReport, NamesTheLastOperationAndWhatItWaitsFor) {
  const Result result = launch({"-n", "2", probe(), "record", "running", "ABRT"});
  EXPECT_TRUE(has(result.err,
                  "last operation: all_reduce #57, 1048576 x float32 sum, communicator 0000abcd"))
      << result.err;
  EXPECT_TRUE(has(result.err, "it waits for rank 1")) << result.err;
}

TEST(LaunchReport, QuietIsOneLine) {
  const Result result = launch({"-q", "-n", "2", probe(), "one-ends", "0", "3"});
  EXPECT_EQ(count_of(result.err, "\n"), 1) << result.err;
  EXPECT_TRUE(has(result.err, "exited with code 3"));
}

TEST(LaunchReport, AGoodJobIsSilent) {
  const Result result = launch({"-n", "4", "true"});
  EXPECT_EQ(result.out + result.err, "");
}

TEST(LaunchReport, ATimeLimitTellsWhereEveryRankWas) {
  const Result result = launch({"--timeout", "700ms", "-n", "2", probe(), "record", "running"});
  EXPECT_EQ(result.code, 124);
  EXPECT_TRUE(has(result.err, "rank 0: last operation: all_reduce #57")) << result.err;
  EXPECT_TRUE(has(result.err, "ended by hcc-launch: ranks 0-1")) << result.err;
}

TEST(LaunchReport, JsonHasTheWholeStory) {
  const std::string path = temporary_folder() + "/job.json";
  Launch run({"-q", "--report", path, "-n", "1", "sleep", "60", ":", "-n", "1", "sh", "-c",
              "printf 'bad \\377 \"bytes\"\\n' >&2; exit 9"});
  EXPECT_EQ(run.finish().code, 9);
  const std::string json = read_file(path);
  for (const std::string_view part :
       {"\"schema\": \"hcomm.launch.report\"", "\"version\": 1", "\"exit_code\": 9",
        "\"first_failure\": 1", "\"state\": \"failed\"", "\"state\": \"ended\"",
        "\"signal_name\": \"SIGTERM (15)\"", "\\\"bytes\\\""})
    EXPECT_TRUE(has(json, part)) << part << "\n" << json;
  EXPECT_FALSE(has(json, "SECRET"));
  EXPECT_EQ(launch({"--report", "/no/such/folder/x", "true"}).code, 125);
}

}  // namespace
}  // namespace hcomm::launch_test
