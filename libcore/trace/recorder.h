// SPDX-License-Identifier: Apache-2.0
// The writing end of the recorder, one a process; always on. An operation costs two reads of the
// cycle counter and the stores of one cache line. Without a launcher the memory is the process's
// own.
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

  // A new record, not yet visible; the caller fills the plain fields, then calls `publish` with its
  // serial. From any thread: an operation keeps its record until `end`.
  OpRecord& begin(uint64_t& serial) {
    // In one order with the other threads' records: this one's place was theirs a ring ago.
    serial = serial_.fetch_add(1, std::memory_order_acq_rel) + 1;
    OpRecord& record = area_->ring[serial % kRingRecords];
    record.serial.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // before all that follows
    record.state.store(OpState::none, std::memory_order_relaxed);
    record.begin_ticks = ticks();
    record.end_ticks = 0;
    return record;
  }
  void publish(OpRecord& record, uint64_t serial) {
    record.state.store(OpState::running, std::memory_order_relaxed);
    record.serial.store(serial, std::memory_order_release);
    area_->last_serial.store(serial, std::memory_order_release);
  }
  static void end(OpRecord& record, OpState state) {
    record.end_ticks = ticks();
    record.state.store(state, std::memory_order_release);
  }

  RankArea& area() { return *area_; }
  // One writer at a time, so a load and a store do.
  void count_sent(uint32_t peer, uint64_t bytes) { add(link(peer).sent_bytes, bytes); }
  void count_received(uint32_t peer, uint64_t bytes) { add(link(peer).received_bytes, bytes); }

 private:
  LinkCounters& link(uint32_t peer) { return area_->links[peer < kLinks ? peer : kLinks - 1]; }
  static void add(std::atomic<uint64_t>& counter, uint64_t bytes) {
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  RankArea* area_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::atomic<uint64_t> serial_{0};
};

}  // namespace hcomm::trace
