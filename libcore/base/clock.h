// SPDX-License-Identifier: Apache-2.0
// Time. Everything that waits uses the monotonic clock; the wall clock is for people and for files.
// ticks() is the cheap counter of the data path (rdtsc), turned into time by
// ticks_per_ns().
#pragma once

#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace hcomm {

int64_t now_ns();       // CLOCK_MONOTONIC
int64_t wall_ns();      // CLOCK_REALTIME
std::string utc_text(int64_t wall_ns);  // 2026-01-31T12:00:00.000000Z

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(now_ns());
#endif
}

// The same, read when all instructions before it are done.
inline uint64_t ticks_after() {
#if defined(__x86_64__)
  unsigned core = 0;
  return __rdtscp(&core);
#else
  return ticks();
#endif
}

double ticks_per_ns();  // calibrated once a process, about a millisecond at first use

// A moment after which a wait must end. Value; the default never ends.
class Deadline {
 public:
  Deadline() = default;
  static Deadline after_ms(int64_t ms);  // ms <= 0: never
  bool passed() const { return at_ns_ != 0 && now_ns() >= at_ns_; }
  bool endless() const { return at_ns_ == 0; }
  int64_t left_ms() const;  // at least 0; INT32_MAX when endless, so that poll() can take it
  int64_t at_ns() const { return at_ns_; }

 private:
  int64_t at_ns_ = 0;
};

}  // namespace hcomm
