// SPDX-License-Identifier: Apache-2.0
// The launcher is three processes, each the parent of the next. The keeper, which the user started
// and sees, passes signals and the exit code on. The guard does nothing but watch; it has a process
// group of its own, so that a SIGKILL of the user's job misses it. The agent process does the work.
// All three are child subreapers, so every process of the job stays below them, and whichever is
// left when another dies, however it dies, ends the job. Used by main. Absent: any knowledge of
// ranks.
#pragma once

#include <csignal>
#include <functional>

namespace hcomm::launch {

// What a child of these processes is sent when its parent dies.
inline int parent_gone_signal() {
  return SIGRTMIN;
}

// What the agent process is sent when the keeper was sent a signal, with its number as the value:
// so it does not merge with one that came to their whole process group.
inline int passed_on_signal() {
  return SIGRTMIN + 1;
}

struct Guard {
  sigset_t handled;         // blocked: signals that are passed on, the two above, SIGCHLD
  sigset_t inherited_mask;  // for the ranks
};

// Runs `work` in the agent process. Returns its code in the keeper; the other processes do not
// return. Throws system errors.
int run_guarded(char* process_name, const std::function<int(const Guard&)>& work);

}  // namespace hcomm::launch
