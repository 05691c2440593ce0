// SPDX-License-Identifier: Apache-2.0
// The launcher is two processes. The keeper, which the user started and sees, waits for the agent
// process, its child, which does the work; it passes signals and the exit code on. Both are child
// subreapers, so every process of the job stays below them, and each ends the job when the other
// dies, however it dies. Used by main. Absent: any knowledge of ranks.
#pragma once

#include <csignal>
#include <functional>

namespace hcomm::launch {

struct Guard {
  int keeper_fd = -1;       // hangs up when the keeper is gone
  sigset_t handled;         // signals that the keeper passes on, blocked; and SIGCHLD
  sigset_t inherited_mask;  // for the ranks
};

// Runs `work` in the agent process. Returns its code in the keeper; the agent process does not
// return. Throws system errors.
int run_guarded(char* process_name, const std::function<int(const Guard&)>& work);

}  // namespace hcomm::launch
