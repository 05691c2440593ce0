// SPDX-License-Identifier: Apache-2.0
// Ends of a job: whose code counts, who is ended, and that nothing is left.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

int own_core() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &mask)) return core;
  return -1;
}

TEST(LaunchExit, PassesCodesThrough) {
  EXPECT_EQ(launch({"-n", "2", "true"}).code, 0);
  EXPECT_EQ(launch({"-n", "1", probe(), "exit", "7"}).code, 7);
  EXPECT_EQ(launch({"-n", "2", probe(), "one-ends", "1", "255"}).code, 255);
  EXPECT_EQ(launch({"-n", "2", probe(), "one-ends", "1", "SEGV"}).code, 128 + SIGSEGV);
  EXPECT_EQ(launch({"-n", "2", probe(), "one-ends", "0", "KILL"}).code, 128 + SIGKILL);
}

TEST(LaunchExit, MissingProgramIs127) {
  const Result result = launch({"-n", "2", "no-such-program-here"});
  EXPECT_EQ(result.code, 127);
  EXPECT_NE(result.err.find("no-such-program-here: no such program in PATH"), std::string::npos)
      << result.err;
  EXPECT_EQ(launch({"/no/such/file"}).code, 127);
  EXPECT_EQ(launch({""}).code, 127);
}

TEST(LaunchExit, NotExecutableIs126) {
  const std::string path = temporary_folder() + "/plain";
  std::ofstream(path) << "data";
  const Result result = launch({path});
  EXPECT_EQ(result.code, 126);
  EXPECT_NE(result.err.find("Permission denied"), std::string::npos) << result.err;
  EXPECT_EQ(launch({"/tmp"}).code, 126);
}

TEST(LaunchExit, BrokenInterpreterIs127AndLeavesNothing) {
  const std::string path = temporary_folder() + "/script";
  std::ofstream(path) << "#!/no/such/interpreter\n";
  chmod(path.c_str(), 0755);
  Launch run({"-n", "1", "sleep", "100", ":", "-n", "1", path});
  EXPECT_EQ(run.finish().code, 127);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, ScriptWithoutInterpreterLineRuns) {
  const std::string path = temporary_folder() + "/script";
  std::ofstream(path) << "echo \"$0:$1\"\n";
  chmod(path.c_str(), 0755);
  EXPECT_EQ(launch({path, "a b"}).out, path + ":a b\n");
}

TEST(LaunchExit, UsageErrorsAre2) {
  Result result = launch({"--tiemout", "3", "true"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("unknown option --tiemout; did you mean --timeout?"), std::string::npos)
      << result.err;
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"-n", "0", "true"},
                                                                 {"-n", "two", "true"},
                                                                 {"-n"},
                                                                 {"--label", "x", "true"},
                                                                 {"-H", "a,b", "true"},
                                                                 {"-n", "2", "true", ":"},
                                                                 {"true", ":", "-q", "true"},
                                                                 {"--stdin", "5", "true"},
                                                                 {"--tee", "true"}}) {
    result = launch(words);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(words);
    EXPECT_NE(result.err.find("hcc-launch: "), std::string::npos);
  }
}

// A full disk or a reader that is gone takes the words, not the exit code.
TEST(LaunchExit, CodesDoNotDependOnWhoReadsTheMessages) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  const auto code = [&](std::vector<std::string> words, bool out) {
    Launch run(std::move(words));
    return (out ? run.output(full.get()) : run.errors(full.get())).finish().code;
  };
  EXPECT_EQ(code({"--bogus"}, false), 2);
  EXPECT_EQ(code({"no-such-program-here"}, false), 127);
  EXPECT_EQ(code({"--unset", "NO_SUCH_NAME", "true"}, false), 0);
  EXPECT_EQ(code({"--help"}, true), 125);
  EXPECT_EQ(code({"--dry-run", "-n", "500", "true"}, true), 125);
}

TEST(LaunchExit, EXI_01_KillOfLauncherLeavesNoRank) {
  Launch run({"-n", "4", probe(), "stubborn", "ignore"});
  ASSERT_TRUE(run.wait_for("ready", 4));
  run.signal(SIGKILL);
  EXPECT_EQ(run.finish().code, 128 + SIGKILL);
  EXPECT_TRUE(run.nothing_left(5));
}

TEST(LaunchExit, EXI_01_KillOfAgentLeavesNoRank) {
  Launch run({"-n", "4", probe(), "stubborn", "ignore"});
  ASSERT_TRUE(run.wait_for("ready", 4));
  signal_process(run.process("hcc-agent"), SIGKILL);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 125);
  EXPECT_NE(result.err.find("ended by SIGKILL (9)"), std::string::npos) << result.err;
  EXPECT_TRUE(run.nothing_left(5));
}

// Of whom no signal of a dying parent reaches the last one.
const std::vector<std::string> kGrandchildren = {"-n",   "2", "sh", "-c", "\"$0\" ready & wait",
                                                 probe()};

TEST(LaunchExit, EXI_01_KillOfTheWholeGroupLeavesNothing) {
  Launch run(kGrandchildren);
  ASSERT_TRUE(run.own_group().wait_for("ready", 2));
  run.signal_group(SIGKILL);
  EXPECT_EQ(run.finish().code, 128 + SIGKILL);
  EXPECT_TRUE(run.nothing_left(5));
}

TEST(LaunchExit, EXI_01_KillOfTwoOfTheLaunchersProcessesLeavesNothing) {
  using Names = std::vector<std::string>;
  for (const Names& names : {Names{"hcc-launch", "hcc-agent"}, Names{"hcc-launch", "hcc-guard"},
                             Names{"hcc-guard", "hcc-agent"}}) {
    Launch run(kGrandchildren);
    ASSERT_TRUE(run.wait_for("ready", 2));
    std::vector<pid_t> pids;
    for (const std::string& name : names) pids.push_back(run.process(name));
    for (const pid_t pid : pids) signal_process(pid, SIGKILL);
    run.finish(10);
    EXPECT_TRUE(run.nothing_left(5)) << names[0] << " " << names[1];
  }
}

// Whatever the agent process cannot do, here: wait.
TEST(LaunchExit, EXI_01_AnAgentThatGivesUpLeavesNothing) {
  Launch run({"-n", "30", "sh", "-c", "sleep 100 & wait"});
  const Result result = run.prefix({probe(), "deny", "epoll"}).finish(10);
  EXPECT_EQ(result.code, 125);
  EXPECT_NE(result.err.find("wait for events of the job"), std::string::npos) << result.err;
  EXPECT_TRUE(run.nothing_left(5));
}

// A daemon of a rank: own session, no descriptor of ours, parent gone.
TEST(LaunchExit, EXI_01_NoEscapeeIsLeft) {
  Launch run({"-n", "2", probe(), "escapee-wait"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGKILL);
  run.finish();
  EXPECT_TRUE(run.nothing_left(5));

  Launch by_agent({"-n", "2", probe(), "escapee-wait"});
  ASSERT_TRUE(by_agent.wait_for("ready", 2));
  signal_process(by_agent.process("hcc-agent"), SIGKILL);
  by_agent.finish();
  EXPECT_TRUE(by_agent.nothing_left(5));
}

TEST(LaunchExit, EXI_03_TimeLimitEndsRanksThatIgnoreTerm) {
  Launch run({"--timeout", "500ms", "--grace", "300ms", "-n", "2", probe(), "stubborn", "ignore"});
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 124);
  EXPECT_NE(result.err.find("time limit"), std::string::npos) << result.err;
  EXPECT_LT(result.seconds, 8);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, EXI_05_AbortEndsRanksThatHoldOutAgainstTerm) {
  for (const std::string how : {"ignore", "block"}) {
    Launch run({"--grace", "300ms", "-n", "2", probe(), "stubborn", how, ":", "-n", "1", "sh", "-c",
                "sleep 0.3; exit 9"});
    ASSERT_TRUE(run.wait_for("ready", 2));
    const Result result = run.finish(15);
    EXPECT_EQ(result.code, 9) << how;
    EXPECT_NE(result.err.find("ended by hcc-launch: ranks 0-1"), std::string::npos) << result.err;
    EXPECT_TRUE(run.nothing_left());
  }
}

// Runs: 12, or HCOMM_TEST_ROUNDS for each number of ranks.
TEST(LaunchExit, EXI_07_TwoFailTogether) {
  for (const std::string ranks : {"2", "4"})
    for (int i = 0; i < rounds(12); i++) {
      const Result result = launch({"-q", "-n", ranks, probe(), "exit", "3"});
      ASSERT_EQ(result.code, 3) << "round " << i << " of " << ranks << " ranks\n" << result.err;
    }
}

TEST(LaunchExit, EXI_07_OneFailsAtARandomTime) {
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < rounds(6); i++) {
    const std::string pause = "0.0" + std::to_string(random() % 90 + 10);
    const Result result = launch({"-q", "-n", "2", "sleep", "60", ":", "sh", "-c",
                                  "sleep " + pause + "; exit 3", ":", "sleep", "60"});
    ASSERT_EQ(result.code, 3) << "seed " << seed << " round " << i << " pause " << pause;
  }
}

TEST(LaunchExit, EXI_07_DifferentCodesGiveOneOfThem) {
  for (int i = 0; i < rounds(8); i++) {
    const Result result = launch({"-n", "4", "sh", "-c", "exit $((HCOMM_RANK + 10))"});
    ASSERT_GE(result.code, 10);
    ASSERT_LE(result.code, 13);
    const std::string first = "rank " + std::to_string(result.code - 10) + " failed first";
    ASSERT_NE(result.err.find(first), std::string::npos) << result.code << "\n" << result.err;
  }
}

// The agent sleeps while three end, the first of them well: the order of their ends is what counts.
TEST(LaunchExit, EXI_07_TheFirstInTimeIsNamed) {
  Launch run({"-n", "3", "sh", "-c",
              "trap \"exit $((2 - HCOMM_RANK))\" USR1; echo \"pid $$ of $HCOMM_RANK.\"\n"
              "while :; do sleep 0.02; done"});
  ASSERT_TRUE(run.wait_for(".\n", 3));
  const pid_t agent = run.process("hcc-agent");
  signal_process(agent, SIGSTOP);
  ASSERT_TRUE(wait_until(10, [&] { return state_of(agent) == 'T'; }));
  for (const int rank : {2, 1, 0}) {
    const pid_t pid = run.number_before(" of " + std::to_string(rank) + ".");
    signal_process(pid, SIGUSR1);
    ASSERT_TRUE(wait_until(10, [&] { return state_of(pid) == 'Z'; }));
  }
  signal_process(agent, SIGCONT);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("rank 1 failed first"), std::string::npos) << result.err;
}

// Of an orphan that ends before its rank the agent hears first, and reaps it last.
TEST(LaunchExit, AnOrphanThatEndsBeforeItsRankIsReaped) {
  Launch run({"sh", "-c",
              "(sh -c 'echo \"pid $$ of orphan.\"; exec sleep 1000' &); "
              "echo \"pid $$ of rank.\"; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for(".\n", 2));
  const pid_t agent = run.process("hcc-agent");
  signal_process(agent, SIGSTOP);
  ASSERT_TRUE(wait_until(10, [&] { return state_of(agent) == 'T'; }));
  for (const std::string who : {"orphan", "rank"}) {
    const pid_t pid = run.number_before(" of " + who + ".");
    signal_process(pid, SIGKILL);
    ASSERT_TRUE(wait_until(10, [&] { return state_of(pid) == 'Z'; })) << who;
  }
  signal_process(agent, SIGCONT);
  const Result result = run.finish(10);
  EXPECT_TRUE(result.in_time) << result.err;
  EXPECT_EQ(result.code, 128 + SIGKILL);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, EXI_09_OneExitsBeforeTheOthersAreDone) {
  Launch run({"-n", "4", probe(), "one-ends", "1", "7"});
  const Result result = run.finish(15);
  EXPECT_EQ(result.code, 7);
  EXPECT_NE(result.err.find("rank 1 failed first: it exited with code 7"), std::string::npos);
  EXPECT_LT(result.seconds, 5);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, EXI_11_OneLeavesBeforeInit) {
  Launch run({"-n", "3", probe(), "record", "starting", ":", "-n", "1", "true"});
  const Result result = run.finish(20);
  EXPECT_EQ(result.code, 124);
  EXPECT_NE(result.err.find("rank 3 left before init"), std::string::npos) << result.err;
  EXPECT_LT(result.seconds, 5);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, EXI_11_OneThrowsBeforeInit) {
  Launch run({"-n", "3", probe(), "record", "starting", ":", probe(), "exit", "ABRT"});
  const Result result = run.finish(20);
  EXPECT_EQ(result.code, 128 + SIGABRT);
  EXPECT_NE(result.err.find("rank 3 failed first: it died of SIGABRT (6)"), std::string::npos);
}

// Somebody who never joins is no fault while others still may, or when all have joined.
TEST(LaunchExit, EXI_11_HelpersOfOtherKindsAreLeftAlone) {
  Launch mixed({"-n", "1", probe(), "record", "starting", ":", "sh", "-c", "sleep 2.5; exit 5", ":",
                "true"});
  EXPECT_EQ(mixed.finish(20).code, 5);
  Launch joined(
      {"--timeout", "2500ms", "-q", "-n", "2", probe(), "record", "running", ":", "true"});
  const Result result = joined.finish(20);
  EXPECT_EQ(result.err.find("left before init"), std::string::npos) << result.err;
}

// Two that are long in the init of a communicator of their own miss nobody.
TEST(LaunchExit, EXI_11_AGroupOfItsOwnMissesNobody) {
  const Result result = launch(
      {"--timeout", "2500ms", "-n", "2", probe(), "record", "starting", "", "2", ":", "true"});
  EXPECT_EQ(result.code, 124);
  EXPECT_EQ(result.err.find("left before init"), std::string::npos) << result.err;
}

TEST(LaunchExit, KeepGoingLetsOthersFinish) {
  const Result result = launch({"--keep-going", "-n", "1", probe(), "exit", "3", ":", "-n", "1",
                                "sh", "-c", "sleep 0.3; echo done"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "done\n");
}

TEST(LaunchExit, LeftoversOfAGoodJobAreEnded) {
  Launch run({"--grace", "300ms", "-n", "2", probe(), "escapee"});
  const Result result = run.finish(15);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchExit, TooFewDescriptorsIsOneClearError) {
  const std::string files = temporary_folder() + "/%R";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-n", "200", "true"},
                                                {"-n", "60", "--output-pattern", files, "true"},
                                                {"-n", "60", "--stdin", "all", "true"}}) {
    Launch run(words);
    run.prefix({"sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"});
    const Result result = run.finish();
    EXPECT_EQ(result.code, 125) << testing::PrintToString(words);
    EXPECT_NE(result.err.find("the limit is 256"), std::string::npos) << result.err;
  }
}

TEST(LaunchExit, TheLimitOfDescriptorsIsRaisedForUsAlone) {
  const std::string folder = temporary_folder();
  Launch run({"-n", "40", "--output-pattern", folder + "/%R", "sh", "-c", "ulimit -n"});
  run.prefix({"sh", "-c", "ulimit -Sn 64; exec \"$@\"", "sh"});
  const Result result = run.finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(read_file(folder + "/39"), "64\n");
}

// 126 and 127 speak of the program; what else keeps a rank from starting is not its fault.
TEST(LaunchExit, OtherStepsOfAStartThatFailAre125) {
  Launch run({"--bind-to", "list:" + std::to_string(own_core()), "true"});
  const Result result = run.prefix({probe(), "deny", "affinity"}).finish();
  EXPECT_EQ(result.code, 125);
  EXPECT_NE(result.err.find("bind it to its cores: Operation not permitted"), std::string::npos)
      << result.err;
}

// A rank that could not start has pipes that nobody counted.
TEST(LaunchExit, AFailedStartAndAReaderThatLeft) {
  const std::string path = temporary_folder() + "/script";
  std::ofstream(path) << "#!/no/such/interpreter\n";
  chmod(path.c_str(), 0755);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd writing(ends[1]);
  close(ends[0]);
  Launch run({"-n", "8", "yes", ":", path});
  EXPECT_EQ(run.output(writing.get()).finish(10).code, 127);
}

}  // namespace
}  // namespace hcomm::launch_test
