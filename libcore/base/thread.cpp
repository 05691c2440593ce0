// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/bytes.h"

namespace hcomm {

uint32_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

uint64_t last_level_cache_bytes() {
  static const uint64_t bytes = [] {
    uint64_t found = 0;
    for (int index = 0; index < 8; index++) {
      std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
      uint64_t value = 0;
      char unit = 0;
      if (!(file >> value >> unit)) continue;
      found = std::max(found, unit == 'M' ? value * kMiB : unit == 'K' ? value * kKiB : value);
    }
    return found != 0 ? found : 32 * kMiB;
  }();
  return bytes;
}

void name_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

std::thread start_thread(const char* name, std::function<void()> body) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;
  return std::thread([name, body = std::move(body)] {
    name_thread(name);
    body();
  });
}

}  // namespace hcomm
