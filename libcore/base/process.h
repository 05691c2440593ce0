// SPDX-License-Identifier: Apache-2.0
// Which process this is, cheaply: a number that changes in a forked child. What was made under
// another number belongs to the parent and must not be used.
#pragma once

#include <atomic>
#include <cstdint>

namespace hcomm {

extern std::atomic<uint32_t> g_process_generation;  // written by the fork handler only

inline uint32_t process_generation() {
  return g_process_generation.load(std::memory_order_relaxed);
}

}  // namespace hcomm
