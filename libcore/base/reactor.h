// SPDX-License-Identifier: Apache-2.0
// What the lower layers need of the process's one service thread: to be told when a descriptor is
// readable. Implemented by comm/service; tests may bring their own. Callbacks run in the service
// thread, must not block, and do not touch payload.
#pragma once

#include <functional>

namespace hcomm {

class Reactor {
 public:
  virtual ~Reactor() = default;
  // Calls `ready` whenever fd is readable (level-triggered), until unwatch.
  virtual void watch(int fd, std::function<void()> ready) = 0;
  // After it returns the callback neither runs nor will run. From any thread, the callback's own
  // included.
  virtual void unwatch(int fd) = 0;
};

}  // namespace hcomm
