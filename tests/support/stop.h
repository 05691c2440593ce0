// SPDX-License-Identifier: Apache-2.0
// How a child of a test stops itself: in a process group of its own. Where the tests' group has no
// shell (a container, setsid), the kernel ends all of it by SIGHUP when a process that somebody
// moved between groups ends while a member of it is stopped: one test, another one's.
#pragma once

#include <unistd.h>

#include <csignal>

namespace hcomm::test {

inline void stop_self() {
  setpgid(0, 0);
  raise(SIGSTOP);
}

}  // namespace hcomm::test
