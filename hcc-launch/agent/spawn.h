// SPDX-License-Identifier: Apache-2.0
// Starts one rank. Used by the agent. The child borrows our memory until it executes its program
// (vfork), so a start costs no copy of page tables and a failure comes back as a value. The child
// dies with the agent (PDEATHSIG). Absent: a shell; arguments and environment pass byte for byte.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <span>

namespace hcomm::launch {

struct SpawnRequest {
  const char* path = nullptr;  // of the program; relative to folder
  // argv of the program from index 1 on, null at the end; index 0 is room for a shell that runs a
  // script without an interpreter line.
  char** argv = nullptr;
  char** environment = nullptr;
  const char* folder = nullptr;  // null: ours
  int in_fd = -1, out_fd = -1, err_fd = -1;
  std::span<const int> inherit;              // descriptors that the rank keeps
  std::span<const unsigned long> core_mask;  // bits by core; empty: ours
  bool own_group = true;                     // false: the rank may read our terminal
  sigset_t signal_mask;
  rlimit open_files;  // the limit that we were started with
};

struct SpawnResult {
  pid_t pid = -1;              // -1: failed
  int error = 0;               // errno of what failed
  const char* step = nullptr;  // what failed, e.g. "change to its working directory"
  bool by_program = false;     // that of all steps: executing it
};

SpawnResult spawn(SpawnRequest& request);

}  // namespace hcomm::launch
