// SPDX-License-Identifier: Apache-2.0
// A job as values: what is to run, where, with which environment. Made by plan.h from the options,
// read by the agent that starts it and by the front that reports on it. Knows no process and no
// descriptor, so it can be printed (--dry-run).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hcc-launch/agent/binding.h"

namespace hcomm::launch {

// Exit codes of the launcher's own, as of timeout(1) and env(1).
inline constexpr int kExitTimeout = 124, kExitLauncher = 125, kExitNoProgram = 126,
                     kExitMissing = 127;

struct RankPlan {
  uint32_t rank = 0, local_rank = 0;
  std::string path;               // of the program to execute, relative to folder
  std::vector<std::string> argv;  // with the wrapping command, if any
  std::string folder;             // working directory; empty: ours
  size_t environment = 0;         // in Job::environments
  Cores cores;                    // empty: as inherited
};

enum class StdinTo : uint8_t { none, one, all };

struct Job {
  std::string id, secret, host;
  std::vector<std::vector<std::string>> environments;  // NAME=VALUE, without what the agent adds
  std::vector<RankPlan> ranks;
  StdinTo stdin_to = StdinTo::one;
  uint32_t stdin_rank = 0;

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
};

}  // namespace hcomm::launch
