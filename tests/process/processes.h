// SPDX-License-Identifier: Apache-2.0
// Ranks as real processes: each runs a body with its rank and the way to make its communicator; the
// test looks at how they ended. The parent never touches the library, so that nothing is inherited.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <vector>

#include "hcomm/hcomm.h"

namespace hcomm::test {

// Memory that all processes of a test share.
struct Shared {
  std::atomic<int> id_ready{0};
  hcommUniqueId id;
  std::atomic<int> arrived{0};
  std::atomic<int> flags[16] = {};
};

class Process {
 public:
  Process(Shared& shared, int rank, int ranks) : shared_(shared), rank_(rank), ranks_(ranks) {}
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Shared& shared() const { return shared_; }

  // The id that the first process has made.
  const hcommUniqueId& id() const {
    if (rank_ == 0) {
      check(hcommGetUniqueId(&shared_.id), "hcommGetUniqueId");
      shared_.id_ready.store(1);
    }
    while (shared_.id_ready.load() == 0) sched_yield();
    return shared_.id;
  }
  // Joins the communicator of all processes of the test.
  hcommComm_t join(const hcommConfig_t* config = nullptr) const {
    hcommComm_t comm = nullptr;
    check(hcommCommInitRankConfig(&comm, ranks_, id(), rank_, config), "init");
    return comm;
  }
  // Waits for all processes of the test, without the library.
  void meet() const {
    const int round = shared_.arrived.fetch_add(1) / ranks_;
    while (shared_.arrived.load() < (round + 1) * ranks_) sched_yield();
  }
  // Ends the process with 1 and a line when the call failed.
  void check(hcommResult_t result, const char* what, hcommComm_t comm = nullptr) const {
    if (result == hcommSuccess) return;
    std::fprintf(stderr, "rank %d: %s: %s: %s | %s\n", rank_, what, hcommGetErrorString(result),
                 hcommGetLastError(nullptr), comm ? hcommGetLastError(comm) : "");
    _exit(1);
  }
  void expect(bool condition, const char* what) const {
    if (condition) return;
    std::fprintf(stderr, "rank %d: expected: %s\n", rank_, what);
    _exit(2);
  }
  // A sum over all ranks with known result.
  void sum(hcommComm_t comm, size_t count = 1000) const {
    std::vector<float> in(count, static_cast<float>(rank_ + 1)), out(count);
    check(hcommAllReduce(in.data(), out.data(), count, hcommFloat32, hcommSum, comm, nullptr),
          "allreduce", comm);
    for (const float value : out)
      expect(value == static_cast<float>(ranks_ * (ranks_ + 1)) / 2, "the right sum");
  }

 private:
  Shared& shared_;
  int rank_, ranks_;
};

// Rounds of a race, or seconds of a wait: `normal`, or HCOMM_TEST_ROUNDS when that is set.
inline int rounds(int normal) {
  for (const char* const* entry = environ; *entry != nullptr; entry++)
    if (std::strncmp(*entry, "HCOMM_TEST_ROUNDS=", 18) == 0) return std::atoi(*entry + 18);
  return normal;
}

inline double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Starts ranks processes; `run` collects their wait statuses. Whatever happens, none is left.
class Job {
 public:
  using Body = std::function<void(const Process&)>;

  Job() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }

  void start(int ranks, const Body& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < ranks; rank++) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(60);
        body(Process(*shared_, rank, ranks));
        _exit(0);
      }
      pids_.push_back(pid);
    }
  }
  // Exit code, 128 + signal, of each rank.
  std::vector<int> wait() {
    std::vector<int> codes;
    for (const pid_t pid : pids_) {
      int status = 0;
      waitpid(pid, &status, 0);
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    pids_.clear();
    return codes;
  }
  // True when the rank has ended; `wait` still collects it.
  bool ended(int rank) const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid(rank)), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
  }
  Shared& shared() { return *shared_; }
  pid_t pid(int rank) const { return pids_[static_cast<size_t>(rank)]; }

 private:
  Shared* shared_;
  std::vector<pid_t> pids_;
};

inline std::vector<int> run_processes(int ranks, const Job::Body& body) {
  Job job;
  job.start(ranks, body);
  return job.wait();
}

}  // namespace hcomm::test
