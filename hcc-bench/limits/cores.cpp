// SPDX-License-Identifier: Apache-2.0
// What passing a word from one core to another costs, by every way of waiting for it, and what one
// call costs.
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/fd.h"
#include "hcc-bench/limits/crew.h"

namespace hcomm::bench::limits {

namespace {

// Two members hand a turn to one another for ever: 0 takes the even ones. One call of the returned
// operation is a round trip.
template <typename Await, typename Tell>
auto round_trip(Member& member, Await await, Tell tell) {
  return [&member, await, tell, turn = uint32_t{0}]() mutable {
    const auto own = static_cast<uint32_t>(member.rank());
    await(turn + own);
    tell(turn + own + 1);
    if (own == 0) await(turn + 2);
    turn += 2;
  };
}

void pass_line(Member& member) {
  Line& line = member.line(0);
  member.time(round_trip(
                  member, [&](uint32_t turn) { member.await(line.turn, turn); },
                  [&](uint32_t turn) { line.turn.store(turn, std::memory_order_release); }),
              2);
}

void futex(std::atomic<uint32_t>& word, int what, uint32_t value) {
  syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

void pass_by_futex(Member& member) {
  std::atomic<uint32_t>& word = member.line(0).turn;
  const auto await = [&word](uint32_t turn) {
    for (uint32_t seen = word.load(); static_cast<int32_t>(seen - turn) < 0; seen = word.load())
      futex(word, FUTEX_WAIT, seen);
  };
  const auto tell = [&word](uint32_t turn) {
    word.store(turn);
    futex(word, FUTEX_WAKE, INT_MAX);
  };
  member.time(round_trip(member, await, tell), 2);
}

// Member 1 sleeps; member 0 gives it the time to fall asleep, then rings. What counts is from there
// until member 1 runs; the clock is the same on all cores.
template <typename Sleep, typename Ring>
void wake(Member& member, Sleep sleep, Ring ring) {
  constexpr int64_t kAsleepNs = 100'000;
  std::atomic<int64_t>& rung_ns = member.board().moment_ns;
  member.time_part(
      [&]() -> double {
        if (member.rank() == 1) {
          sleep();
          return static_cast<double>(now_ns() - rung_ns.load()) * 1e-9;
        }
        const int64_t then_ns = now_ns() + kAsleepNs;
        while (now_ns() < then_ns) {
        }
        rung_ns.store(now_ns());
        ring();
        return 0;
      },
      kAsleepNs * 1e-9);
}

void wake_by_futex(Member& member) {
  std::atomic<uint32_t>& word = member.line(0).turn;
  wake(
      member,
      [&word, seen = uint32_t{0}]() mutable {
        while (word.load() == seen) futex(word, FUTEX_WAIT, seen);
        seen = word.load();
      },
      [&word] {
        word.fetch_add(1);
        futex(word, FUTEX_WAKE, INT_MAX);
      });
}

void wake_by_eventfd(Member& member, int bell) {
  uint64_t count = 1;
  wake(
      member,
      [&] {
        if (read(bell, &count, sizeof count) != sizeof count) fail_system(errno, "read an eventfd");
      },
      [&] {
        if (write(bell, &count, sizeof count) != sizeof count)
          fail_system(errno, "write to an eventfd");
      });
}

// A call of one process, so many times that the loop does not count.
template <typename Call>
Timed time_call(const Request& request, Call call) {
  constexpr int kTimes = 100;
  return run_alone(request, [&](Member& member) {
    member.time(
        [&] {
          for (int i = 0; i < kTimes; i++) call();
        },
        kTimes);
  });
}

volatile uint64_t g_clock;

Limit limit_of(const char* name, int processes, const char* bounds) {
  return {.section = "cores", .name = name, .processes = processes, .bounds = bounds};
}

void measure_pairs(const Request& request) {
  add_of_pair(request, limit_of("line", 2, "a message of a few bytes, one way, both awake"),
              [&] { return run_pair(request, pass_line); });
  add_of_pair(request, limit_of("wake_by_futex", 2, "a message to a rank that sleeps elsewhere"),
              [&] { return run_pair(request, wake_by_futex); });
  add_of_pair(request, limit_of("wake_by_eventfd", 2, "the same, asleep in poll"), [&] {
    const UniqueFd bell(eventfd(0, EFD_CLOEXEC));
    if (!bell) fail_system(errno, "make an eventfd");
    return run_pair(request, [&](Member& member) { wake_by_eventfd(member, bell.get()); });
  });
}

}  // namespace

void measure_cores(const Request& request) {
  measure_pairs(request);
  const Crew one_core{{request.cores[0], request.cores[0]}, request.min_time_s};
  add_measured(request, limit_of("yield_one_core", 2, "a message between ranks that share a core"),
               [&] { return run_crew(one_core, pass_line); });
  add_measured(request, limit_of("futex_one_core", 2, "the same, when they sleep"),
               [&] { return run_crew(one_core, pass_by_futex); });
  add_measured(request, limit_of("system_call", 1, "whatever asks the kernel"),
               [&] { return time_call(request, [] { syscall(SYS_getppid); }); });
  add_measured(request, limit_of("clock", 1, "a deadline that is looked at"), [&] {
    return time_call(request, [] { g_clock = static_cast<uint64_t>(now_ns()); });
  });
  add_measured(request, limit_of("ticks", 1, "a time stamp of the recorder"),
               [&] { return time_call(request, [] { g_clock = ticks(); }); });
}

}  // namespace hcomm::bench::limits
