// SPDX-License-Identifier: Apache-2.0
// What this process may run on, and names for threads.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace hcomm {

// Cores that this thread's affinity mask allows (a container's cpuset included); at least 1.
uint32_t usable_cores();
// Of the last cache before memory, shared by cores; as the kernel tells, else 32 MiB.
uint64_t last_level_cache_bytes();
void name_thread(const char* name);  // at most 15 characters
// A thread with all signals blocked: they are the application's. Throws std::system_error.
std::thread start_thread(const char* name, std::function<void()> body);

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace hcomm
