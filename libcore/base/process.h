// SPDX-License-Identifier: Apache-2.0
// Which process this is, cheaply: a number that changes in a forked child. What was made under
// another number belongs to the parent and must not be used. And the kernel's random bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hcomm {

extern std::atomic<uint32_t> g_process_generation;  // written by the fork handler only

inline uint32_t process_generation() {
  return g_process_generation.load(std::memory_order_relaxed);
}

// From the kernel: what nobody else can guess. Throws Error(system).
void fill_random(std::span<std::byte> bytes);

}  // namespace hcomm
