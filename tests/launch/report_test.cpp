// SPDX-License-Identifier: Apache-2.0
// The failure report and job.json.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

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
  EXPECT_TRUE(
      has(result.err,
          "last operation: all_reduce #57, 1048576 x float32 (4MiB) sum, communicator 0000abcd"))
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
  EXPECT_EQ(count_of(result.err, ": last operation: all_reduce #57"), 2) << result.err;
  EXPECT_TRUE(has(result.err, "ended by hcc-launch: ranks 0-1")) << result.err;
}

// The commonest use: it hangs, ^C, who waits for whom?
TEST(LaunchReport, AnInterruptTellsWhereEveryRankWas) {
  Launch run({"-n", "2", probe(), "record", "running"});
  ASSERT_TRUE(run.wait_for("recorded", 2));
  run.signal(SIGINT);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 128 + SIGINT);
  EXPECT_TRUE(has(result.err, "the job was ended by SIGINT (2)")) << result.err;
  for (const std::string rank : {"| rank 0 on ", "| rank 1 on "})
    EXPECT_TRUE(has(result.err, rank)) << result.err;
  EXPECT_EQ(count_of(result.err, ": last operation: all_reduce #57, 1048576 x float32 (4MiB) sum"),
            2)
      << result.err;
  EXPECT_EQ(count_of(result.err, "not complete; waits for rank 1"), 2) << result.err;
}

TEST(LaunchReport, JsonTellsOfAStartThatFailed) {
  const std::string folder = temporary_folder(), script = folder + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  chmod(script.c_str(), 0755);
  EXPECT_EQ(launch({"-q", "--report", folder + "/json", script}).code, 127);
  const std::string json = read_file(folder + "/json");
  EXPECT_TRUE(has(json, "\"exit_code\": 127")) << json;
  EXPECT_TRUE(has(json, "\"cause\": \"start rank 0 (" + script + "): execute it: No such file"))
      << json;
  EXPECT_TRUE(has(json, "\"state\": \"not started\"")) << json;
}

TEST(LaunchReport, JsonTellsOfLostOutput) {
  const std::string path = temporary_folder() + "/job.json";
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  Launch run({"--report", path, "echo", "lost"});
  EXPECT_EQ(run.output(full.get()).finish().code, 125);
  const std::string json = read_file(path);
  EXPECT_TRUE(has(json, "\"exit_code\": 125")) << json;
  EXPECT_TRUE(has(json, "\"cause\": \"write standard output: No space left on device\"")) << json;
}

TEST(LaunchReport, AReportThatCannotBeWrittenIsKnownAtTheStart) {
  const std::string marker = temporary_folder() + "/ran";
  EXPECT_EQ(launch({"--report", "/no/such/folder/x", "touch", marker}).code, 125);
  EXPECT_NE(access(marker.c_str(), F_OK), 0);
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
}

}  // namespace
}  // namespace hcomm::launch_test
