// SPDX-License-Identifier: Apache-2.0
// Which of several communicators of a rank goes first where they share its network and its cores:
// while an operation of a higher priority moves, those of lower ones stand still. One that waits
// without moving holds nobody: what it waits for may be behind what it held. Shared by a
// communicator and those made of it by hcommCommVirtual; used by the threads that drive them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace hcomm::engine {

inline constexpr int kPriorities = 4;  // 0 to 3, the higher goes first

class Traffic {
 public:
  // hold_ns: how long a wait counts as moving, some round trips.
  explicit Traffic(int64_t hold_ns)
      : hold_ticks_(static_cast<uint64_t>(static_cast<double>(hold_ns) * ticks_per_ns())) {}

  void begin(int priority) {
    moved(priority);
    levels_[static_cast<size_t>(priority)].underway.fetch_add(1, std::memory_order_release);
  }
  void end(int priority) {
    levels_[static_cast<size_t>(priority)].underway.fetch_sub(1, std::memory_order_release);
  }
  void moved(int priority) {
    levels_[static_cast<size_t>(priority)].moved_ticks.store(ticks(), std::memory_order_relaxed);
  }
  bool holds(int priority) const {
    for (auto above = static_cast<size_t>(priority) + 1; above < levels_.size(); above++) {
      const Level& level = levels_[above];
      if (level.underway.load(std::memory_order_acquire) == 0) continue;
      // Signed: the other thread may have moved after we read the clock.
      const uint64_t moved = level.moved_ticks.load(std::memory_order_relaxed);
      if (static_cast<int64_t>(ticks() - moved) < static_cast<int64_t>(hold_ticks_)) return true;
    }
    return false;
  }

 private:
  struct alignas(64) Level {
    std::atomic<uint32_t> underway{0};
    std::atomic<uint64_t> moved_ticks{0};
  };
  const uint64_t hold_ticks_;
  std::array<Level, kPriorities> levels_;
};

}  // namespace hcomm::engine
