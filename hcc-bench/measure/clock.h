// SPDX-License-Identifier: Apache-2.0
// The clock that a measurement reads: an object, so that tests can say how long an operation takes.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace hcomm::bench {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t read_ns() const = 0;
};

class MonotonicClock : public Clock {
 public:
  int64_t read_ns() const override { return now_ns(); }
};

}  // namespace hcomm::bench
