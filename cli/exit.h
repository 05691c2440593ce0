// SPDX-License-Identifier: Apache-2.0
// Exit codes of the family (hcc-launch apart, which passes its program's code on). A tool's main
// returns one of these; scripts rely on them.
#pragma once

namespace hcomm::cli {

enum Exit : int {
  kDone = 0,       // and, of a tool that checks, nothing wrong was found
  kProblem = 1,    // the tool worked and found a problem
  kUsage = 2,      // the command line is wrong
  kCannotRun = 3,  // not here: no permission, unreadable input, peer unreachable
  kHang = 4,       // a hang or time-out that the tool found itself
  kUndecided = 5,  // incomplete data
  kInterrupted = 130,
  kTerminated = 143,
};

}  // namespace hcomm::cli
