// SPDX-License-Identifier: Apache-2.0
// A crew: processes forked for one measurement, each on a core of its own or several on one, that
// share a board. What they time needs no deadlines in its loops: the parent watches the members,
// and when one dies or all are late it ends them. None outlives the parent. Used by the sections;
// absent: communication by the library, which is what these limits are held against.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "hcc-bench/limits/limit.h"

namespace hcomm::bench::limits {

inline constexpr int kMostMembers = 8;
inline constexpr size_t kMostSamples = 4096;

// Two lines, since processors fetch lines in pairs.
struct alignas(2 * kCacheLine) Line {
  std::atomic<uint32_t> turn{0};
  float payload[8] = {};
};

struct Board {
  Line lines[kMostMembers];  // of the bodies; zero at the start
  Line arrived, epoch, before, after;
  struct alignas(2 * kCacheLine) Time {
    double seconds;
  } times[kMostMembers];
  std::atomic<int64_t> moment_ns{0};  // of the bodies
  double before_ns, after_ns;
  uint32_t sample_count;
  double samples[kMostSamples];
  int error_code;  // of the member that failed first
  char error[256];
  std::atomic<uint32_t> failed{0};
};

// Memory from mmap, in huge pages where there are some, given back by the owner. Shared: with the
// processes that are forked while it is there.
enum class Sharing : uint8_t { own, shared };
class Mapping {
 public:
  Mapping(size_t bytes, Sharing sharing);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, bytes_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  // Numbers that a sum shows, which also makes the pages this process's.
  void fill(float value) const;

 private:
  void* data_;
  size_t bytes_;
};

enum class Wait : uint8_t { spin, yield };

class Member {
 public:
  Member(Board& board, int rank, const std::vector<int>& cores, double min_time_s);

  int rank() const { return rank_; }
  int peer() const { return 1 - rank_; }  // in a crew of two
  int ranks() const { return static_cast<int>(cores_.size()); }
  Wait wait() const { return wait_; }
  Board& board() const { return board_; }
  Line& line(int rank) const { return board_.lines[rank]; }

  // Until `flag`, which only grows, has come to `value`.
  void await(const std::atomic<uint32_t>& flag, uint32_t value) const {
    while (static_cast<int32_t>(flag.load(std::memory_order_acquire) - value) < 0)
      if (wait_ == Wait::yield) sched_yield();
  }
  void barrier();

  // Times `operation`, which every member repeats as often as the others: batches of about 0.1 ms,
  // of the slowest member. `parts`: what one call does is so many of what is reported.
  template <typename Operation>
  void time(Operation operation, double parts = 1) {
    operation();  // the first touch
    double one_s = batch(operation, 1);
    if (one_s < 1e-3) one_s = std::min(one_s, batch(operation, 1));
    const int64_t count = std::clamp(static_cast<int64_t>(1e-4 / one_s), int64_t{1}, kMostCount);
    if (count > 1) one_s = batch(operation, count);
    double spent_s = 0;
    uint32_t taken = 0;
    while (taken < kMostSamples && (spent_s < min_time_s_ || taken < 3)) {
      const double sample_s = batch(operation, count);
      spent_s += sample_s * static_cast<double>(count);
      board_.samples[taken++] = sample_s / parts;  // the same on all members
    }
    board_.sample_count = taken;
    barrier();
  }

  // Where the operation times a part of itself: the seconds that it returns, the most of all
  // members'. `pause_s`: what it takes beside.
  template <typename Operation>
  void time_part(Operation operation, double pause_s) {
    double spent_s = 0;
    uint32_t taken = 0;
    while (taken < kMostSamples && (spent_s < min_time_s_ || taken < 3)) {
      barrier();
      board_.times[rank_].seconds = operation();
      const double sample_s = slowest();
      spent_s += sample_s + pause_s;
      board_.samples[taken++] = sample_s;
    }
    board_.sample_count = taken;
    barrier();
  }

 private:
  static constexpr int64_t kMostCount = 100'000;

  template <typename Operation>
  double batch(Operation& operation, int64_t count) {
    barrier();
    const int64_t start_ns = now_ns();
    for (int64_t i = 0; i < count; i++) operation();
    board_.times[rank_].seconds =
        static_cast<double>(now_ns() - start_ns) * 1e-9 / static_cast<double>(count);
    return slowest();
  }

  // The same number for all, from what each has just written.
  double slowest() {
    barrier();
    double slowest_s = 1e-10;
    for (int i = 0; i < ranks(); i++) slowest_s = std::max(slowest_s, board_.times[i].seconds);
    barrier();
    return slowest_s;
  }

  Board& board_;
  const int rank_;
  const std::vector<int>& cores_;
  const double min_time_s_;
  const Wait wait_;
};

struct Crew {
  std::vector<int> cores;  // of each member
  double min_time_s = 0.05;
  double limit_s = 60;
};

// Forks the crew, lets every member run `body`, which calls `time` once, and gives what it took.
// Throws the Error that a member threw; system: a member died; timeout: it took more than limit_s.
Timed run_crew(const Crew& crew, const std::function<void(Member&)>& body);

// One member on the first core; two on two.
Timed run_alone(const Request& request, const std::function<void(Member&)>& body);
Timed run_pair(const Request& request, const std::function<void(Member&)>& body);

}  // namespace hcomm::bench::limits
