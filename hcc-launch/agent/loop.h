// SPDX-License-Identifier: Apache-2.0
// The launcher's only place that waits: descriptors (epoll) and timers. One thread, one owner
// (Front); the agent and the printer register callbacks. Readiness is reported in the order in
// which it happened, which is how the first of several failing ranks is known. Absent: threads,
// locks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/fd.h"

namespace hcomm::launch {

class Loop {
 public:
  using Ready = std::function<void()>;
  using TimerId = uint64_t;  // 0: none

  Loop();
  // False when the descriptor cannot be waited for (a regular file): it is always ready.
  bool watch(int fd, uint32_t events, Ready ready);
  void forget(int fd);  // does nothing when fd is not watched

  TimerId after_ms(int64_t ms, std::function<void()> run);
  void cancel(TimerId& timer);  // and sets it to 0

  // Waits until something is ready or a timer is due, and runs what is.
  void run_once();

 private:
  struct Watch {
    int fd;
    Ready ready;
  };
  struct Timer {
    TimerId id;
    std::function<void()> run;
  };

  void run_timers();
  int wait_ms() const;

  UniqueFd epoll_;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;  // shared: a callback may forget itself
  std::multimap<int64_t, Timer> timers_;                     // by the moment they are due
  TimerId last_timer_ = 0;
};

}  // namespace hcomm::launch
