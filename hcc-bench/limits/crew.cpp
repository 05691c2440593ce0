// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/limits/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <span>

#include "base/fd.h"
#include "hcc-bench/measure/statistics.h"

namespace hcomm::bench::limits {

namespace {

constexpr size_t kHugePage = 2 * kMiB;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail_system(errno, "move to core {}", core);
}

bool apart(const std::vector<int>& cores) {
  return std::set<int>(cores.begin(), cores.end()).size() == cores.size();
}

// The least one-way time of a cache line between members 0 and 1, on lines of its own.
double probe_ns(Member& member, Line& line) {
  constexpr uint32_t kTurns = 100, kRounds = 30;
  double best_ns = 1e9;
  const auto own = static_cast<uint32_t>(member.rank());
  for (uint32_t turn = 0; turn < kRounds * kTurns;) {
    const int64_t start_ns = now_ns();
    for (uint32_t end = turn + kTurns; turn < end; turn += 2) {
      member.await(line.turn, turn + own);
      line.turn.store(turn + own + 1, std::memory_order_release);
    }
    best_ns = std::min(best_ns, static_cast<double>(now_ns() - start_ns) / kTurns);
  }
  return best_ns;
}

// A member as the parent sees it: the pipe's other end is held by nobody else, so it closes when
// the process has ended, however it did.
struct Process {
  pid_t pid = -1;
  UniqueFd alive;
};

// Ends and reaps what is left, in every case.
class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const Process& each : list_)
      if (each.pid > 0) kill(each.pid, SIGKILL);
    for (const Process& each : list_)
      if (each.pid > 0) reap(each.pid);
  }

  void start(const std::function<void()>& body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_system(errno, "make a pipe");
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) fail_system(errno, "fork");
    if (pid == 0) {
      // Not even a parent that is killed leaves a spinning child behind.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      body();
      _exit(0);
    }
    list_.push_back({pid, std::move(read_end)});
  }

  // Until all have ended well. What the first one that did not ended with, 0: none.
  int wait(const Deadline& deadline) {
    for (size_t left = list_.size(); left > 0;) {
      std::vector<pollfd> polled;
      for (const Process& each : list_)
        polled.push_back({each.pid > 0 ? each.alive.get() : -1, POLLIN, 0});
      const int ready = poll(polled.data(), polled.size(), static_cast<int>(deadline.left_ms()));
      if (ready < 0 && errno != EINTR) fail_system(errno, "wait for processes");
      if (deadline.passed()) fail(Code::timeout, "a measurement took too long and was ended");
      for (size_t i = 0; i < polled.size() && ready > 0; i++) {
        if (polled[i].revents == 0) continue;
        const int status = reap(std::exchange(list_[i].pid, -1));
        left--;
        if (status != 0) return status;
      }
    }
    return 0;
  }

 private:
  static int reap(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  std::vector<Process> list_;
};

void tell(Board& board, const Error& error) {
  if (board.failed.exchange(1) != 0) return;
  board.error_code = static_cast<int>(error.code());
  std::strncpy(board.error, error.what(), sizeof board.error - 1);
}

void work(Board& board, const Crew& crew, int rank, const std::function<void(Member&)>& body) {
  const auto at = static_cast<size_t>(rank);
  try {
    pin(crew.cores[at]);
    Member member(board, rank, crew.cores, crew.min_time_s);
    const bool probes = crew.cores.size() > 1 && apart(crew.cores) && rank < 2;
    if (probes) board.before_ns = probe_ns(member, board.before);
    member.barrier();
    body(member);
    member.barrier();
    if (probes) board.after_ns = probe_ns(member, board.after);
  } catch (const Error& error) {
    tell(board, error);
    _exit(1);
  } catch (const std::exception& error) {
    tell(board, Error(Code::system, error.what()));
    _exit(1);
  }
}

}  // namespace

Mapping::Mapping(size_t bytes, Sharing sharing) : bytes_(round_up(bytes, kHugePage)) {
  const int how = sharing == Sharing::shared ? MAP_SHARED : MAP_PRIVATE;
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | how, -1, 0);
  if (data_ == MAP_FAILED) fail_system(errno, "map {}", size_text(bytes_));
  madvise(data_, bytes_, MADV_HUGEPAGE);
}

void Mapping::fill(float value) const {
  std::fill_n(as<float>(), bytes_ / sizeof(float), value);
}

Member::Member(Board& board, int rank, const std::vector<int>& cores, double min_time_s)
    : board_(board),
      rank_(rank),
      cores_(cores),
      min_time_s_(min_time_s),
      wait_(apart(cores) ? Wait::spin : Wait::yield) {}

void Member::barrier() {
  const uint32_t epoch = board_.epoch.turn.load(std::memory_order_acquire);
  if (board_.arrived.turn.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<uint32_t>(ranks())) {
    board_.arrived.turn.store(0, std::memory_order_relaxed);
    board_.epoch.turn.store(epoch + 1, std::memory_order_release);
  } else {
    await(board_.epoch.turn, epoch + 1);
  }
}

Timed run_crew(const Crew& crew, const std::function<void(Member&)>& body) {
  const Mapping memory(sizeof(Board), Sharing::shared);
  Board& board = *new (memory.as<void>()) Board{};
  Processes processes;
  for (int rank = 0; rank < static_cast<int>(crew.cores.size()); rank++)
    processes.start([&] { work(board, crew, rank, body); });
  const int status = processes.wait(Deadline::after_ms(static_cast<int64_t>(crew.limit_s * 1000)));
  if (status != 0 && board.failed.load() != 0)
    throw Error(static_cast<Code>(board.error_code), board.error);
  if (WIFSIGNALED(status))
    fail(Code::system, "a process of the measurement was ended by signal {}", WTERMSIG(status));
  if (status != 0)
    fail(Code::system, "a process of the measurement left with {}", WEXITSTATUS(status));
  const Statistics found = statistics(std::span(board.samples, board.sample_count));
  Timed timed{found.least * 1e6, found.median * 1e6, {}, {}};
  if (board.before_ns > 0) timed.before_ns = board.before_ns;
  if (board.after_ns > 0) timed.after_ns = board.after_ns;
  return timed;
}

Timed run_alone(const Request& request, const std::function<void(Member&)>& body) {
  return run_crew({{request.cores.front()}, request.min_time_s}, body);
}

Timed run_pair(const Request& request, const std::function<void(Member&)>& body) {
  return run_crew({{request.cores[0], request.cores[1]}, request.min_time_s}, body);
}

}  // namespace hcomm::bench::limits
