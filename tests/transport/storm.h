// SPDX-License-Identifier: Apache-2.0
// A storm of signals: an interval timer of 200 us whose handler does nothing and restarts nothing.
#pragma once

#include <signal.h>
#include <sys/time.h>

namespace hcomm::test {

class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, &before_);
    set(200);
  }
  ~SignalStorm() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  static void set(int us) {
    itimerval every{};
    every.it_interval.tv_usec = every.it_value.tv_usec = us;
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction before_ {};
};

}  // namespace hcomm::test
