// SPDX-License-Identifier: Apache-2.0
// Which process this is, cheaply: a number that changes in a forked child. What was made under
// another number belongs to the parent and must not be used. Also its host's name, the kernel's
// random bytes, and what the kernel says of other processes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hcomm {

extern std::atomic<uint32_t> g_process_generation;  // written by the fork handler only

inline uint32_t process_generation() {
  return g_process_generation.load(std::memory_order_relaxed);
}

// From the kernel: what nobody else can guess. Throws Error(system).
void fill_random(std::span<std::byte> bytes);

std::string host_name();  // "" when the kernel does not tell

// /proc/PID/stat.
struct ProcessState {
  char letter = 0;  // R runs, S sleeps, D waits for a device, T stopped, Z has ended
  pid_t parent = 0;
};
std::optional<ProcessState> read_process(pid_t pid);  // nullopt: it is gone

}  // namespace hcomm
