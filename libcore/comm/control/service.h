// SPDX-License-Identifier: Apache-2.0
// The one service thread of a process: asleep in epoll, it tells listeners, control connections and
// timers that something happened. Owned by the Runtime; used by the control plane and, as a
// Reactor, by the transports. It starts with the first watch and ends in the destructor. All
// signals are blocked in it. Absent: payload, anything that blocks.
//
// After a fork the child has the object but not the thread: everything does nothing there, so that
// the parent (with whom the child shares the epoll instance) is left alone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/fd.h"
#include "base/process.h"
#include "base/reactor.h"

namespace hcomm::comm {

class Service final : public Reactor {
 public:
  using Task = std::function<void()>;
  using Timer = uint64_t;
  enum class Want : uint8_t { nothing, read, read_write };

  // Throws Error(system) without descriptors.
  Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  // Joins the thread. Nothing may be watched any more. Not from the service thread.
  ~Service() override;

  // A task that throws is logged and never called again. Throws Error(system).
  void watch(int fd, Task ready) override;
  void unwatch(int fd) override;
  // What of a watched descriptor calls its task; `read` after watch. Errors and hang-ups call it
  // whatever is wanted. An unknown fd is ignored.
  void want(int fd, Want what);

  // Runs the task once in the service thread, `ms` from now.
  Timer run_after(int64_t ms, Task task);
  // After it returns the task neither runs nor will run (it may have run). As unwatch.
  void cancel(Timer timer);
  // Runs the task in the service thread and waits for its end; directly when called there.
  void run(const Task& task);

  bool here() const;  // the caller is the service thread
  // This process is a fork of the one that made it.
  bool inherited() const { return generation_ != process_generation(); }

 private:
  struct Watch {
    int fd;
    Task ready;  // empty while it runs
  };
  using Lock = std::unique_lock<std::mutex>;

  void start();  // lock held
  void wake() const;
  void loop();
  void run_watch(Lock& lock, uint64_t id);
  void run_timers(Lock& lock);
  int wait_ms() const;  // lock held

  const uint32_t generation_ = process_generation();
  UniqueFd epoll_, wake_;
  std::mutex mutex_;
  std::condition_variable idle_;  // a task has ended
  std::unordered_map<uint64_t, Watch> watches_;
  std::unordered_map<int, uint64_t> ids_;             // by descriptor
  std::map<std::pair<int64_t, Timer>, Task> timers_;  // by time (ns)
  uint64_t next_id_ = 1;
  int running_fd_ = -1;  // whose task runs now
  Timer running_timer_ = 0;
  bool stop_ = false;
  std::unique_ptr<std::thread> thread_;  // released, not destroyed, in a forked child
};

}  // namespace hcomm::comm
