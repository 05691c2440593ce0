// SPDX-License-Identifier: Apache-2.0
// What a process has once: its settings, its service thread, its shareable memory, its recorder,
// and the hubs of the communicators whose rendezvous it serves. Made by the C API at first use,
// lives to the end of the process; a forked child makes its own.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "base/config.h"
#include "base/process.h"
#include "comm/control/control.h"
#include "comm/control/hub.h"
#include "comm/control/job.h"
#include "comm/control/service.h"
#include "device/memory.h"
#include "trace/recorder.h"

namespace hcomm::comm {

class Runtime {
 public:
  // Reads the environment. Throws Error.
  Runtime();

  const Config& config() const { return config_; }
  Service& service() { return service_; }
  SharedMemory& memory() { return memory_; }
  // The process's recorder, made for the first who asks.
  std::shared_ptr<trace::Recorder> recorder(uint32_t rank, uint32_t ranks);

  // Keeps a hub until all its ranks have left: they may outlive the communicator of this process.
  // Those that are over go when the next one comes.
  void keep(std::unique_ptr<Hub> hub);
  // Where the job that started this process meets; found once.
  Root meet(const Job& job, Deadline deadline);
  // Says goodbye for all of them; waits 2 s at most for ranks that are about to leave.
  void end_hubs();
  bool of_this_process() const { return generation_ == process_generation(); }

 private:
  const uint32_t generation_ = process_generation();
  Config config_;
  SharedMemory memory_;
  Service service_;
  std::mutex mutex_;  // what follows
  std::shared_ptr<trace::Recorder> recorder_;
  std::list<std::unique_ptr<Hub>> hubs_;
  std::mutex meeting_mutex_;  // what follows
  Meeting meeting_;
};

}  // namespace hcomm::comm
