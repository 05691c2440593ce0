// SPDX-License-Identifier: Apache-2.0
// The hang watchdog: a thread that ends the process with exit code 4 when no operation has finished
// for a while, no bytes move and no rank that is awaited works: that is what the recorder says that
// hcc-launch holds. Without one (mpirun, torchrun, srun) a large operation is given the time that a
// slow network takes. It says where this rank is; the first ranks also say where all ranks of the
// host are. The measuring thread only stores a counter.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace hcomm::bench {

class Watchdog {
 public:
  // timeout_ns 0: does nothing. `last_words` runs before the process ends (close a document) and
  // must not throw.
  Watchdog(int64_t timeout_ns, int rank, int ranks, std::function<void()> last_words);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // "allreduce 4MiB, timing": a step; `bytes` are those of one operation.
  void at(std::string place, size_t bytes);
  void step() { steps_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void watch();
  [[noreturn]] void bite();

  int64_t timeout_ns_;
  bool recorded_;  // hcc-launch holds a recorder
  int rank_, ranks_;
  std::function<void()> last_words_;
  std::atomic<uint64_t> steps_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::string place_;
  int64_t patience_ns_ = 0;  // of one operation, where nothing is recorded
  std::thread thread_;
};

// One line a rank: what its recorder says, and whether its process is stopped or gone. "" without a
// recorder.
std::string ranks_text(int ranks);

}  // namespace hcomm::bench
