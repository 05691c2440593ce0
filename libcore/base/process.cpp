// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <pthread.h>
#include <sys/random.h>

#include <cerrno>

#include "base/error.h"

namespace hcomm {

std::atomic<uint32_t> g_process_generation{[] {
  pthread_atfork(nullptr, nullptr,
                 [] { g_process_generation.fetch_add(1, std::memory_order_relaxed); });
  return 1u;
}()};

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) fail_system(errno, "read random bytes");
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

}  // namespace hcomm
