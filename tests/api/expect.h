// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder say of results and texts, from any rank's thread.
#pragma once

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "collective/world.h"

namespace hcomm::test {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline bool says(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

inline void expect(const Rank& self, bool right, const std::string& what) {
  if (!right) self.findings->add("rank " + std::to_string(self.rank) + ": expected: " + what);
}

inline void expect(const Rank& self, hcommResult_t seen, hcommResult_t wanted,
                   const std::string& what) {
  if (seen != wanted)
    self.findings->add("rank " + std::to_string(self.rank) + ": " + what + ": expected " +
                       hcommGetErrorString(wanted) + ", got " + hcommGetErrorString(seen) + ": " +
                       hcommGetLastError(nullptr));
}

// Until the communicator has failed, or an operation of it runs (`wanted` hcommInProgress).
inline hcommResult_t wait_for_state(const Rank& self, bool running = false) {
  hcommResult_t state = hcommSuccess;
  do {
    hcommCommGetAsyncError(self.comm, &state);
    std::this_thread::yield();
  } while (running ? state != hcommInProgress
                   : state == hcommSuccess || state == hcommInProgress);
  return state;
}

inline hcommResult_t sum_one(const Rank& self, int* out, hcommStream_t stream = nullptr) {
  static int one = 1;
  return hcommAllReduce(&one, out, 1, hcommInt32, hcommSum, self.comm, stream);
}

}  // namespace hcomm::test
