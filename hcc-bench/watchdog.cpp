// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/watchdog.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/process.h"
#include "base/thread.h"
#include "cli/exit.h"
#include "cli/terminal.h"
#include "schedule/schedule.h"
#include "trace/reader.h"

namespace hcomm::bench {

namespace {

constexpr int64_t kMostPatience = 20;    // time-outs, while a rank that is late works
constexpr int64_t kSlowNsPerByte = 100;  // 10 MB/s

std::string process_text(int pid) {
  switch (read_process(pid).value_or(ProcessState{}).letter) {
    case 0:
      return "process is gone";
    case 'T':
    case 't':
      return "process is stopped";
    case 'Z':
    case 'X':
      return "process has ended";
    case 'D':
      return "process waits for a device";
    case 'R':
      return "process runs";
    default:
      return "process sleeps";
  }
}

std::string operation_text(const trace::OpSnapshot& op) {
  const auto collective = static_cast<schedule::Collective>(op.collective);
  if (collective > schedule::Collective::point_to_point)
    return fmt::format("operation {} (of another version)", op.sequence);
  return fmt::format("{} {} of {} elements", schedule::name(collective), op.sequence, op.count);
}

std::string rank_text(const trace::RankSnapshot& rank) {
  std::string text =
      fmt::format("rank {} ({}, pid {}): ", rank.rank, cli::printable(rank.host), rank.pid);
  if (!rank.last.empty()) {
    const trace::OpSnapshot& last = rank.last.front();
    const bool running = last.state == trace::OpState::running;
    text += fmt::format("{} {}", running ? "in" : "after", operation_text(last));
    if (rank.waiting_peer >= 0)
      text += fmt::format(", waits for rank {} since {:.1f} s", rank.waiting_peer,
                          rank.waiting_us * 1e-6);
    text += ", ";
  }
  return text + process_text(rank.pid);
}

// What the recorder that hcc-launch holds says of all ranks of the host; empty without one.
struct Ranks {
  std::vector<std::optional<trace::RankSnapshot>> ranks;
  uint64_t newest = 0;  // operation that any rank has begun
  bool behind(const trace::RankSnapshot& rank) const {
    return rank.last.empty() || rank.last.front().serial < newest;
  }
};

Ranks read_ranks(int ranks) {
  Ranks all;
  const int fd = Config::from_env().recorder_fd;
  if (fd < 0) return all;
  const size_t bytes = trace::kAreaBytes * static_cast<size_t>(ranks);
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return all;
  for (int i = 0; i < ranks; i++) {
    all.ranks.push_back(trace::read_rank(
        static_cast<const char*>(memory) + trace::kAreaBytes * static_cast<size_t>(i), 1));
    const auto& rank = all.ranks.back();
    if (rank && !rank->last.empty()) all.newest = std::max(all.newest, rank->last.front().serial);
  }
  munmap(memory, bytes);
  return all;
}

// A rank that has not arrived but works is filling or checking its buffers, and an operation whose
// bytes move is a large one: late, not hung. `moved`: the bytes at the last look.
bool somebody_works(int ranks, uint64_t& moved) {
  const Ranks all = read_ranks(ranks);
  uint64_t now_moved = 0;
  for (const auto& rank : all.ranks) now_moved += rank ? rank->moved_bytes : 0;
  if (std::exchange(moved, now_moved) != now_moved) return true;
  return std::any_of(all.ranks.begin(), all.ranks.end(), [&](const auto& rank) {
    if (!rank || !all.behind(*rank)) return false;
    const auto process = read_process(rank->pid);
    return process && (process->letter == 'R' || process->letter == 'D');
  });
}

}  // namespace

std::string ranks_text(int ranks) {
  std::string text;
  const Ranks all = read_ranks(ranks);
  for (size_t i = 0; i < all.ranks.size(); i++) {
    const auto& rank = all.ranks[i];
    if (!rank)
      text += fmt::format("  rank {}: did not start the library on this host\n", i);
    else
      text +=
          fmt::format("  {}{}\n", rank_text(*rank), all.behind(*rank) ? "  <- did not arrive" : "");
  }
  return text;
}

Watchdog::Watchdog(int64_t timeout_ns, int rank, int ranks, std::function<void()> last_words)
    : timeout_ns_(timeout_ns),
      recorded_(Config::from_env().recorder_fd >= 0),
      rank_(rank),
      ranks_(ranks),
      last_words_(std::move(last_words)) {
  // Others leave rank 0, then rank 1, the time to speak for all.
  if (timeout_ns_ > 0) timeout_ns_ += std::min(rank_, 2) * int64_t{1'000'000'000};
  if (timeout_ns_ > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::scoped_lock lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::at(std::string place, size_t bytes) {
  step();
  const std::scoped_lock lock(mutex_);
  if (!recorded_) patience_ns_ = static_cast<int64_t>(bytes) * kSlowNsPerByte;
  place_ = std::move(place);
}

void Watchdog::watch() {
  name_thread("bench-watchdog");
  uint64_t seen = 0;
  int64_t since_ns = now_ns(), late_ns = 0;
  uint64_t moved = 0;
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::nanoseconds(std::min<int64_t>(timeout_ns_ / 4, 250'000'000));
  while (!end_) {
    ended_.wait_for(lock, pause);
    const uint64_t steps = steps_.load(std::memory_order_relaxed);
    if (steps != seen) {
      since_ns = now_ns();
      late_ns = 0;
    }
    seen = steps;
    if (end_ || now_ns() - since_ns < timeout_ns_ + patience_ns_ + late_ns) continue;
    if (late_ns >= kMostPatience * timeout_ns_ || !somebody_works(ranks_, moved)) bite();
    late_ns += timeout_ns_ / 4;
  }
}

void Watchdog::bite() {
  std::string text = fmt::format(
      "hcc-bench: hang: rank {} ({}, pid {}): no progress for {:.0f} s in {}, after {} steps\n",
      rank_, host_name(), getpid(), static_cast<double>(timeout_ns_ + patience_ns_) * 1e-9, place_,
      steps_.load(std::memory_order_relaxed));
  if (rank_ < 2) text += ranks_text(ranks_);
  cli::complain_lines(text);
  last_words_();
  _exit(cli::kHang);
}

}  // namespace hcomm::bench
