// SPDX-License-Identifier: Apache-2.0
// The writing end of the recorder, one a process; always on. An operation costs two reads of the
// cycle counter and the stores of one cache line. Without a launcher the memory is the process's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "trace/record.h"

namespace hcomm::trace {

class Recorder {
 public:
  // fd < 0: private memory. Throws Error(invalid_argument) when fd is too small for rank.
  Recorder(int fd, uint32_t rank, uint32_t ranks);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // A new record in state running; the caller fills the plain fields before it calls `publish`.
  OpRecord& begin() {
    const uint64_t serial = ++serial_;
    OpRecord& record = area_->ring[serial % kRingRecords];
    record.state.store(OpState::none, std::memory_order_relaxed);
    record.begin_ticks = ticks();
    return record;
  }
  void publish(OpRecord& record) {
    record.end_ticks = 0;
    record.state.store(OpState::running, std::memory_order_relaxed);
    record.serial.store(serial_, std::memory_order_release);
    area_->last_serial.store(serial_, std::memory_order_release);
  }
  static void end(OpRecord& record, OpState state) {
    record.end_ticks = ticks();
    record.state.store(state, std::memory_order_release);
  }

  RankArea& area() { return *area_; }
  LinkCounters& link(uint32_t peer) { return area_->links[peer < kLinks ? peer : kLinks - 1]; }

 private:
  RankArea* area_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint64_t serial_ = 0;
};

}  // namespace hcomm::trace
