// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <pthread.h>

namespace hcomm {

std::atomic<uint32_t> g_process_generation{[] {
  pthread_atfork(nullptr, nullptr,
                 [] { g_process_generation.fetch_add(1, std::memory_order_relaxed); });
  return 1u;
}()};

}  // namespace hcomm
