// SPDX-License-Identifier: Apache-2.0
// Streams and events of the host device: a stream is a worker thread that runs tasks in order; a
// mark is a place in that order that others may wait for; an event names the last of its marks.
// Streams and events are owned by the C API's handles.
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

// A place in a stream's order. Shared by the stream that will pass it and those who wait for it,
// hence the shared_ptr.
class Mark {
 public:
  void pass();
  bool passed() const;
  void wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool passed_ = false;
};

// The mark that was recorded last; who waits for an event waits for the one that it has then.
class Event {
 public:
  void record(std::shared_ptr<Mark> mark);  // null: nothing to wait for
  std::shared_ptr<Mark> last() const;       // may be null
  bool done() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Mark> last_;
};

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();  // runs what is queued first

  // The code of a task that fails, or throws, is kept until the next synchronize.
  void enqueue(std::function<Code()> task);
  std::shared_ptr<Mark> mark();                // behind all that is queued now
  void wait_for(std::shared_ptr<Mark> mark);   // what is queued later waits; null: it does not
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
