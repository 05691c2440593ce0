// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: deaths, stops, forks, signals, and the launchers that are installed here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "support/held_port.h"
#include "transport/socket.h"

namespace hcomm::comm {
namespace {

using Words = std::vector<std::string>;

// A child with its standard output in a pipe; killed in the destructor.
class Process {
 public:
  Process(const Words& command, const Words& environment, int kept_fd = -1) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    output_.reset(ends[0]);
    UniqueFd writes(ends[1]);
    pid_ = fork();
    if (pid_ != 0) return;
    setpgid(0, 0);
    dup2(writes.get(), STDOUT_FILENO);
    if (kept_fd >= 0) fcntl(kept_fd, F_SETFD, 0);
    for (const std::string& each : environment) {
      const size_t equals = each.find('=');
      setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
    }
    std::vector<char*> words;
    for (const std::string& each : command) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        output_(std::move(other.output_)),
        text_(std::move(other.text_)) {}
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void kill(int signal) const { ::kill(pid_, signal); }
  // True when a line of the output begins with `begin`, now or within `ms`.
  bool says(std::string_view begin, int64_t ms = 20'000) {
    const Deadline deadline = Deadline::after_ms(ms);
    while (true) {
      if (text_.starts_with(begin) || text_.find(fmt::format("\n{}", begin)) != std::string::npos)
        return true;
      if (deadline.passed() || !read_more(deadline)) return false;
    }
  }
  int wait() {
    const Deadline deadline = Deadline::after_ms(60'000);
    while (!deadline.passed() && read_more(deadline)) {
    }
    int status = -1;
    if (deadline.passed()) ::kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  const std::string& text() const { return text_; }

 private:
  bool read_more(Deadline deadline) {
    pollfd each{output_.get(), POLLIN, 0};
    if (poll(&each, 1, static_cast<int>(deadline.left_ms())) <= 0) return !deadline.passed();
    char buffer[4096];
    const ssize_t bytes = read(output_.get(), buffer, sizeof buffer);
    if (bytes <= 0) return false;
    text_.append(buffer, static_cast<size_t>(bytes));
    return true;
  }

  pid_t pid_ = -1;
  UniqueFd output_;
  std::string text_;
};

std::string rank_program() {
  std::string path(4096, '\0');
  path.resize(static_cast<size_t>(readlink("/proc/self/exe", path.data(), path.size())));
  return path.substr(0, path.rfind('/') + 1) + "comm_rank_program";
}

// A job as hcc-launch starts it.
std::vector<Process> launch(int ranks, const Words& words) {
  Words command{rank_program()};
  command.insert(command.end(), words.begin(), words.end());
  const UniqueFd listener = transport::listen_on(transport::SocketAddress::loopback(0), "");
  const std::string root = fmt::format("127.0.0.1:{}", transport::port_of(listener.get()));
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; rank++) {
    Words environment{fmt::format("HCOMM_RANK={}", rank), fmt::format("HCOMM_SIZE={}", ranks),
                      "HCOMM_ROOT=" + root, "HCOMM_SECRET=0123456789abcdef0123456789abcdef"};
    if (rank == 0) environment.push_back(fmt::format("HCOMM_ROOT_FD={}", listener.get()));
    processes.emplace_back(command, environment, rank == 0 ? listener.get() : -1);
  }
  return processes;
}

void expect_all_end_well(std::vector<Process>& processes) {
  for (Process& process : processes) {
    EXPECT_EQ(process.wait(), 0) << process.text();
    EXPECT_EQ(process.text().find("failure"), std::string::npos) << process.text();
    EXPECT_EQ(process.text().find("wrong"), std::string::npos) << process.text();
  }
}

TEST(Process, JoinExchangeLeave) {
  for (const int ranks : {1, 2, 8}) {
    auto processes = launch(ranks, {"join", "exchange", "leave"});
    expect_all_end_well(processes);
    for (Process& process : processes) EXPECT_TRUE(process.says("left")) << process.text();
  }
}

TEST(Process, WorldAfterWorld) {
  auto processes = launch(4, {"join", "exchange", "again", "exchange", "again", "leave"});
  expect_all_end_well(processes);
}

class Killed : public testing::TestWithParam<size_t> {};

TEST_P(Killed, IsNamedToTheOthersSoon) {
  const size_t victim = GetParam();
  auto processes = launch(4, {"join", "exchange", "wait"});
  for (Process& process : processes) ASSERT_TRUE(process.says("exchanged")) << process.text();
  processes[victim].kill(SIGKILL);
  const int64_t start = now_ns();
  const std::string expected = fmt::format("failure peer failed peer {0}: rank {0} (", victim);
  for (size_t rank = 0; rank < 4; rank++)
    if (rank != victim) {
      EXPECT_TRUE(processes[rank].says(expected)) << processes[rank].text();
    }
  EXPECT_LT(now_ns() - start, 5'000'000'000);  // milliseconds, on a machine that is not loaded
}
INSTANTIATE_TEST_SUITE_P(Rank, Killed, testing::Values(0u, 2u, 3u),
                         testing::PrintToStringParamName());

TEST(Process, AnExitWithoutGoodbyeIsADeath) {
  auto processes = launch(3, {"join", "exchange", "exit-1", "wait"});
  for (const size_t rank : {0u, 2u})
    EXPECT_TRUE(processes[rank].says("failure peer failed peer 1: rank 1 ("))
        << processes[rank].text();
}

TEST(Process, AStoppedRankIsNotDeadAndBlocksNobody) {
  auto processes =
      launch(4, {"join", "stop-last", "exchange-without-last", "exchange-without-last", "leave"});
  for (const size_t rank : {1u, 2u}) {
    EXPECT_TRUE(processes[rank].says("left")) << processes[rank].text();
    EXPECT_EQ(processes[rank].text().find("failure"), std::string::npos) << processes[rank].text();
  }
  processes[3].kill(SIGCONT);
  expect_all_end_well(processes);
}

// SIG-01: a child that exits, or tears down what it inherited, does not touch the parent.
TEST(Process, AForkedChildTouchesNothing) {
  auto processes = launch(3, {"join", "fork", "exchange", "fork", "exchange", "leave"});
  expect_all_end_well(processes);
  for (Process& process : processes) EXPECT_TRUE(process.says("child 0")) << process.text();
}

// SIG-05: a program that a rank has started does not keep its connection open.
TEST(Process, AChildProgramDoesNotHideADeath) {
  auto processes = launch(3, {"join", "sleeper", "exchange", "wait"});
  for (Process& process : processes) ASSERT_TRUE(process.says("exchanged")) << process.text();
  processes[1].kill(SIGKILL);
  EXPECT_TRUE(processes[0].says("failure peer failed peer 1", 5000)) << processes[0].text();
  EXPECT_TRUE(processes[2].says("failure peer failed peer 1", 5000)) << processes[2].text();
}

// SIG-07: signals at every moment.
TEST(Process, SignalsInterruptNothing) {
  for (int round = 0; round < 5; round++) {
    auto processes = launch(8, {"storm", "join", "exchange", "leave"});
    expect_all_end_well(processes);
  }
}

// RDV-07: many processes, few descriptors for each.
TEST(Process, ManyRanksWithFewDescriptors) {
  constexpr int kRanks = 200;
  const std::string script = "ulimit -n 256; exec " + rank_program() + " join exchange leave";
  const UniqueFd listener = transport::listen_on(transport::SocketAddress::loopback(0), "");
  std::vector<Process> processes;
  for (int rank = kRanks - 1; rank >= 0; rank--)
    processes.emplace_back(
        Words{"sh", "-c", script},
        Words{fmt::format("HCOMM_RANK={}", rank), fmt::format("HCOMM_SIZE={}", kRanks),
              fmt::format("HCOMM_ROOT=127.0.0.1:{}", transport::port_of(listener.get())),
              rank == 0 ? fmt::format("HCOMM_ROOT_FD={}", listener.get()) : "HCOMM_JOB_ID="},
        rank == 0 ? listener.get() : -1);
  expect_all_end_well(processes);
}

// RDV-01, RDV-03: the same port again after kill -9 of all, with the same and another size.
TEST(Process, TheSameRootAgain) {
  const UniqueFd listener = transport::listen_on(transport::SocketAddress::loopback(0), "");
  for (const int ranks : {3, 3, 2}) {
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; rank++) {
      Words environment{fmt::format("HCOMM_RANK={}", rank), fmt::format("HCOMM_SIZE={}", ranks),
                        fmt::format("HCOMM_ROOT=127.0.0.1:{}", transport::port_of(listener.get()))};
      if (rank == 0) environment.push_back(fmt::format("HCOMM_ROOT_FD={}", listener.get()));
      processes.emplace_back(Words{rank_program(), "join", "exchange", "wait"}, environment,
                             rank == 0 ? listener.get() : -1);
    }
    for (Process& process : processes) EXPECT_TRUE(process.says("exchanged")) << process.text();
    for (Process& process : processes) process.kill(SIGKILL);
  }
}

// "" where the launcher can start two processes here, else why not.
std::string probe(const Words& launcher) {
  Words command = launcher;
  command.push_back("true");
  Process process(command, {"HCOMM_LOG=warn"});
  const int status = process.wait();
  if (status == 0) return "";
  return WIFEXITED(status) && WEXITSTATUS(status) == 127
             ? launcher[0] + " is not installed"
             : fmt::format("{} cannot start two processes here (status {})", launcher[0], status);
}

void run_under(Words launcher, const char* source) {
  if (const std::string reason = probe(launcher); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* word : {"join", "exchange", "leave"}) {
    if (launcher.back() != rank_program() && std::string(word) == "join")
      launcher.push_back(rank_program());
    launcher.emplace_back(word);
  }
  for (int round = 0; round < 3; round++) {
    Process process(launcher, {});
    EXPECT_EQ(process.wait(), 0) << process.text();
    for (int rank = 0; rank < 4; rank++)
      EXPECT_TRUE(process.says(fmt::format("joined {} of 4 by {}", rank, source)))
          << process.text();
    const std::string& text = process.text();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12) << text;
  }
}

TEST(Launcher, OpenMpi) {
  run_under({"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "4"}, "Open MPI");
}

TEST(Launcher, Mpich) {
  run_under({"mpiexec.hydra", "-n", "4"}, "PMI");
}

TEST(Launcher, Torchrun) {
  // What torchrun sets; its store has MASTER_PORT, we take the next one.
  const test::HeldPair ports;
  const std::string port = std::to_string(ports.low());
  std::vector<Process> processes;
  for (int rank = 3; rank >= 0; rank--)
    processes.emplace_back(
        Words{rank_program(), "join", "exchange", "leave"},
        Words{fmt::format("RANK={}", rank), "WORLD_SIZE=4", fmt::format("LOCAL_RANK={}", rank),
              "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=some-name", "MASTER_PORT=" + port});
  expect_all_end_well(processes);
}

TEST(Launcher, OneSlurmNode) {
  std::vector<Process> processes;
  const std::string job = std::to_string(getpid());
  for (int rank = 3; rank >= 0; rank--)
    processes.emplace_back(
        Words{rank_program(), "join", "exchange", "leave"},
        Words{fmt::format("SLURM_PROCID={}", rank), "SLURM_STEP_NUM_TASKS=4", "SLURM_JOB_ID=" + job,
              "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=1"});
  expect_all_end_well(processes);
}

}  // namespace
}  // namespace hcomm::comm
