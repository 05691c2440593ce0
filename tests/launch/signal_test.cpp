// SPDX-License-Identifier: Apache-2.0
// Signals to the launcher and to its terminal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

TEST(LaunchSignal, UserSignalsArePassedOn) {
  Launch run({"-n", "2", probe(), "signals"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  for (const int signo : {SIGUSR1, SIGUSR2, SIGQUIT}) {
    run.signal(signo);
    EXPECT_TRUE(run.wait_for("got " + std::to_string(signo), 2));
  }
}

TEST(LaunchSignal, TermIsPassedOnAndItsCodeReturned) {
  Launch run({"-n", "2", probe(), "ready"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGTERM);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 128 + SIGTERM);
  EXPECT_NE(result.err.find("the job was ended by SIGTERM (15)"), std::string::npos) << result.err;
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchSignal, ARankMayEndWellOnTerm) {
  Launch run(
      {"-n", "2", "sh", "-c", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGTERM);
  EXPECT_EQ(run.finish(10).code, 0);
}

TEST(LaunchSignal, FirstInterruptGivesGrace) {
  Launch run({"--grace", "300ms", "-n", "2", probe(), "signals"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGINT);
  ASSERT_TRUE(run.wait_for("got 2", 2));
  EXPECT_EQ(run.finish(10).code, 128 + SIGINT);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchSignal, SecondInterruptKills) {
  Launch run({"--grace", "1000s", "-n", "2", probe(), "signals"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGINT);
  ASSERT_TRUE(run.wait_for("got 2", 2));
  pause_ms(100);  // two signals within 50 ms count as one
  run.signal(SIGINT);
  EXPECT_EQ(run.finish(10).code, 128 + SIGINT);
  EXPECT_TRUE(run.nothing_left());
}

TEST(LaunchSignal, ANohupStaysInForce) {
  Launch run({"-n", "1", "sh", "-c", "echo ready; sleep 1; echo survived"});
  run.prefix({"env", "--ignore-signal=HUP"});
  ASSERT_TRUE(run.wait_for("ready"));
  run.signal(SIGHUP);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("survived"), std::string::npos);
}

TEST(LaunchSignal, StopAndContinue) {
  Launch run({"-n", "2", "sh", "-c", "echo ready; sleep 0.5; echo over"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(run.pid(), &status, WUNTRACED), run.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  run.signal(SIGCONT);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(count_of(result.out, "over"), 2);
}

// hcc-launch in the foreground of a terminal of its own, as a shell would start it.
struct Terminal {
  int fd = -1;
  pid_t pid = -1;
  explicit Terminal(std::vector<std::string> words) {
    words.insert(words.begin(), HCC_LAUNCH);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid = forkpty(&fd, nullptr, nullptr, nullptr);
    if (pid == 0) {
      execv(arguments[0], arguments.data());
      _exit(95);
    }
  }
  ~Terminal() {
    close(fd);
    if (pid <= 0) return;
    signal_process(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  bool shows(std::string_view wanted, int times = 1) {
    return wait_until(15, [&] {
      char buffer[4096];
      fcntl(fd, F_SETFL, O_NONBLOCK);
      const ssize_t bytes = read(fd, buffer, sizeof buffer);
      if (bytes > 0) seen.append(buffer, static_cast<size_t>(bytes));
      return count_of(seen, wanted) >= times;
    });
  }
  void type(std::string_view text) {
    ASSERT_EQ(write(fd, text.data(), text.size()), ssize_t(text.size()));
  }
  int code() {
    int status = 0;
    const bool ended = wait_until(15, [&] {
      char buffer[4096];
      const ssize_t bytes = read(fd, buffer, sizeof buffer);
      if (bytes > 0) seen.append(buffer, static_cast<size_t>(bytes));
      return waitpid(pid, &status, WNOHANG) == pid;
    });
    if (!ended) return -1;
    pid = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string seen;
};

TEST(LaunchSignal, ControlCOfATerminalReachesEachRankOnce) {
  Terminal terminal({"--grace", "300ms", "-n", "2", probe(), "signals"});
  ASSERT_TRUE(terminal.shows("ready", 2)) << terminal.seen;
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("got 2", 2)) << terminal.seen;
  EXPECT_EQ(terminal.code(), 128 + SIGINT) << terminal.seen;
  EXPECT_EQ(count_of(terminal.seen, "got 2"), 2) << terminal.seen;
}

TEST(LaunchSignal, STD_03_RankZeroReadsTheTerminal) {
  Terminal terminal({"-n", "2", "sh", "-c", "read line && echo \"$HCOMM_RANK took $line\""});
  terminal.type("typed\n");
  EXPECT_TRUE(terminal.shows("0 took typed")) << terminal.seen;
  EXPECT_EQ(terminal.code(), 1) << terminal.seen;  // rank 1 reads an end of file
}

TEST(LaunchSignal, STD_07_ProgressIsSeenBeforeTheNewline) {
  Terminal single({"-n", "1", probe(), "progress"});
  EXPECT_TRUE(single.shows("\r10%")) << single.seen;
  EXPECT_EQ(single.code(), 0);
  EXPECT_EQ(count_of(single.seen, "%"), 100);

  Terminal several({"-n", "2", "--label", "rank", probe(), "progress"});
  EXPECT_TRUE(several.shows("[0] 10%")) << several.seen;
  EXPECT_TRUE(several.shows("[1] 10%")) << several.seen;
  EXPECT_EQ(several.code(), 0);
  EXPECT_NE(several.seen.find("[0] 100%"), std::string::npos) << several.seen;
  EXPECT_NE(several.seen.find("[1] 100%"), std::string::npos) << several.seen;
}

TEST(LaunchSignal, LabelsAppearWhenASecondRankWrites) {
  Terminal terminal({"-n", "2", "sh", "-c",
                     "if [ $HCOMM_RANK = 0 ]; then echo table; else sleep 0.5; echo more; fi"});
  EXPECT_TRUE(terminal.shows("[1] more")) << terminal.seen;
  EXPECT_EQ(terminal.seen.find("[0]"), std::string::npos) << terminal.seen;
  EXPECT_EQ(terminal.code(), 0);
}

}  // namespace
}  // namespace hcomm::launch_test
