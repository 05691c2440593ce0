// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>

namespace hcomm {

uint32_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
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
