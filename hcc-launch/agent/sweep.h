// SPDX-License-Identifier: Apache-2.0
// Finds and ends everything below a process, whatever process group or session it moved to. Used by
// the agent (to end a job) and by the keeper (when the agent is gone). It relies on the caller
// being a child subreaper: an orphan of the job then becomes the caller's child and stays in the
// tree.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace hcomm::launch {

// Living processes below root (root itself is not among them), from /proc.
std::vector<pid_t> descendants(pid_t root);

void signal_descendants(pid_t root, int signo);

// SIGKILL to all descendants of the calling process, again until none is left or the time is up,
// and reaps them. True when none is left.
bool end_descendants(int64_t limit_ms);

}  // namespace hcomm::launch
