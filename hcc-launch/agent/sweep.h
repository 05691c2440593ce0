// SPDX-License-Identifier: Apache-2.0
// Finds and ends everything below a process, whatever process group or session it moved to. Used by
// the agent (to end a job) and by all processes of the launcher when another of them is gone. It
// relies on the caller being a child subreaper: an orphan of the job then becomes the caller's
// child and stays in the tree.
#pragma once

#include <sys/types.h>

#include <vector>

namespace hcomm::launch {

// Living processes below root (root itself is not among them), from /proc.
std::vector<pid_t> descendants(pid_t root);

// SIGKILL to all descendants of the calling process, again until none is left or 5 s have passed,
// and reaps them.
void end_descendants();

}  // namespace hcomm::launch
