// SPDX-License-Identifier: Apache-2.0
// Signals to the launcher and to its terminal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

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

// Of handlers that are there for one signal (SA_RESETHAND), or of a shell's trap.
TEST(LaunchSignal, WhoIsToldToEndIsToldOnce) {
  Launch run({"--grace", "300ms", "-n", "1", probe(), "signals", ":", "sh", "-c",
              "trap 'exit 9' USR1; echo ready; while :; do sleep 0.02; done"});
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.signal(SIGUSR1);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 9);
  EXPECT_EQ(count_of(result.out, "got 15"), 1) << result.out;
}

TEST(LaunchSignal, WhoOutlivesItsRankIsToldOnce) {
  Launch run({"--grace", "300ms", "-n", "1", "sh", "-c", "\"$0\" signals & wait", probe()});
  ASSERT_TRUE(run.wait_for("ready"));
  run.signal(SIGTERM);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 128 + SIGTERM);
  EXPECT_EQ(count_of(result.out, "got 15"), 1) << result.out;
}

TEST(LaunchSignal, ASignalToTheWholeGroupReachesEachRankOnce) {
  Launch run({"-n", "2", probe(), "signals"});
  ASSERT_TRUE(run.own_group().wait_for("ready", 2));
  run.signal_group(SIGUSR1);
  ASSERT_TRUE(run.wait_for("got 10", 2));
  run.signal(SIGUSR2);  // behind whatever came of the first
  ASSERT_TRUE(run.wait_for("got 12", 2));
  run.signal(SIGKILL);
  EXPECT_EQ(count_of(run.finish(10).out, "got 10"), 2);
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
  explicit Terminal(const std::function<void()>& run) {
    pid = forkpty(&fd, nullptr, nullptr, nullptr);
    if (pid != 0) return;
    run();
    _exit(95);
  }
  explicit Terminal(std::vector<std::string> words)
      : Terminal([&words] {
          words.insert(words.begin(), HCC_LAUNCH);
          std::vector<char*> arguments;
          for (std::string& word : words) arguments.push_back(word.data());
          arguments.push_back(nullptr);
          execv(arguments[0], arguments.data());
        }) {}
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
  void signal_group(int signo) const { kill(-pid, signo); }
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

// Rank 0 is in that group, the others are not.
TEST(LaunchSignal, ASignalToTheForegroundGroupReachesEachRankOnce) {
  Terminal terminal({"-n", "2", probe(), "signals"});
  ASSERT_TRUE(terminal.shows("ready", 2)) << terminal.seen;
  terminal.signal_group(SIGUSR1);
  ASSERT_TRUE(terminal.shows("got 10", 2)) << terminal.seen;
  terminal.signal_group(SIGUSR2);
  ASSERT_TRUE(terminal.shows("got 12", 2)) << terminal.seen;
  EXPECT_EQ(count_of(terminal.seen, "got 10"), 2) << terminal.seen;
}

// A job that a shell has put into the background, with the terminal as its standard input.
TEST(LaunchSignal, STD_03_ABackgroundJobIsNotStopped) {
  for (const std::string to : {"0", "all"}) {
    Terminal shell([&to] {
      const pid_t job = fork();
      if (job == 0) {
        setpgid(0, 0);
        execl(HCC_LAUNCH, HCC_LAUNCH, "-n", "2", "--stdin", to.c_str(), "true", nullptr);
        _exit(95);
      }
      setpgid(job, job);
      int status = 0;
      waitpid(job, &status, WUNTRACED);
      if (WIFSTOPPED(status)) kill(-job, SIGKILL);
      _exit(WIFSTOPPED(status) ? 77 : WEXITSTATUS(status));
    });
    EXPECT_EQ(shell.code(), 0) << to;
  }
}

// A shell's foreground job; on SIGUSR1 the shell takes the terminal back, on another it returns it.
[[noreturn]] void be_shell(std::vector<const char*> words) {
  sigset_t request;
  sigemptyset(&request);
  sigaddset(&request, SIGUSR1);
  sigprocmask(SIG_BLOCK, &request, nullptr);
  std::signal(SIGTTOU, SIG_IGN);
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    tcsetpgrp(0, getpid());
    std::signal(SIGTTOU, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &request, nullptr);
    words.push_back(nullptr);
    execv(words[0], const_cast<char* const*>(words.data()));
    _exit(95);
  }
  int signo = 0, status = 0;
  sigwait(&request, &signo);
  tcsetpgrp(0, getpgrp());
  if (write(1, "background\n", 11) != 11) _exit(96);
  sigwait(&request, &signo);
  if (waitpid(job, &status, WUNTRACED | WNOHANG) == 0) {
    tcsetpgrp(0, job);
    waitpid(job, &status, WUNTRACED);
  }
  if (WIFSTOPPED(status)) kill(-job, SIGKILL);
  _exit(WIFSTOPPED(status) ? 77 : WEXITSTATUS(status));
}

TEST(LaunchSignal, STD_03_AJobSentToTheBackgroundIsNotStoppedByInput) {
  Terminal terminal([] {
    be_shell({HCC_LAUNCH, "-n", "2", "--stdin", "all", "sh", "-c",
              "echo ready; read line && echo \"took $line\""});
  });
  ASSERT_TRUE(terminal.shows("ready", 2)) << terminal.seen;
  signal_process(terminal.pid, SIGUSR1);
  ASSERT_TRUE(terminal.shows("background")) << terminal.seen;
  terminal.type("typed\n");
  pause_ms(50);  // a job that wrongly reads is stopped meanwhile
  signal_process(terminal.pid, SIGUSR1);
  EXPECT_TRUE(terminal.shows("took typed", 2)) << terminal.seen;
  EXPECT_EQ(terminal.code(), 0) << terminal.seen;
}

TEST(LaunchSignal, STD_03_RankZeroReadsTheTerminal) {
  Terminal terminal(
      {"--keep-going", "-n", "2", "sh", "-c", "read line && echo \"$HCOMM_RANK took $line\""});
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
