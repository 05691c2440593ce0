// SPDX-License-Identifier: Apache-2.0
// Streams and events of the host device: a stream is a worker thread that runs tasks in order; an
// event is a place in a stream's order that others may wait for. Owned by the C API's handles.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace hcomm::engine {

// Recorded anew each time; done until recorded first. Shared by the handle and the streams that
// will complete it or wait for it, hence the shared_ptr.
class Event {
 public:
  void expect();   // recorded: not done until complete()
  void complete();
  bool done() const;
  uint64_t recorded() const;            // how often so far
  void wait(uint64_t recorded) const;   // until that record is complete

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t expected_ = 0, completed_ = 0;
};

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();  // runs what is queued first

  // The code of a task that fails is kept until the next synchronize.
  void enqueue(std::function<Code()> task);
  void record(std::shared_ptr<Event> event);
  void wait_for(std::shared_ptr<Event> event);
  Code synchronize();
  bool idle() const;

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Code()>> queue_;
  bool busy_ = false, ending_ = false;
  Code error_ = Code::ok;
  std::thread worker_;  // last: starts when all else is there
};

}  // namespace hcomm::engine
