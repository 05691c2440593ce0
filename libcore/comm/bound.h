// SPDX-License-Identifier: Apache-2.0
// A call, or the sends and receives of an exchange, laid out to run: its plan, its buffers, an
// executor. A communicator keeps the last few, so that what is called again needs no lookup and no
// layout. Used in turn only. Absent: waiting, failures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/call.h"
#include "comm/plans.h"
#include "device/memory.h"
#include "engine/executor.h"

namespace hcomm::comm {

// Of a communicator, for its life.
struct Around {
  Plans* plans = nullptr;
  SharedMemory* memory = nullptr;
  engine::Surroundings engine;
  uint64_t cache_share = 0;  // of the node's last cache, bytes of this rank
  uint32_t rank = 0, ranks = 1;
};

class Bound {
 public:
  explicit Bound(const Around& around) : around_(&around), executor_(around.engine) {}

  // Whether `begin_again` begins what was begun last; whether that is these.
  bool repeats() const { return again_; }
  bool holds(const Call& call) const {
    return again_ && calls_.size() == 1 && calls_.front() == call;
  }
  bool holds(std::span<const Call> calls) const {
    return again_ && std::equal(calls.begin(), calls.end(), calls_.begin(), calls_.end());
  }
  // Sequence: of the communicator; sends and receives have none. Throws Error, bad_alloc.
  void begin(const Call& call, uint32_t sequence);
  void begin_exchange(std::span<const Call> calls);
  void begin_again(uint32_t sequence) { executor_.bind_again({sequence, signature_}); }

  const Plan& plan() const { return *plan_; }
  engine::Executor& executor() { return executor_; }
  const engine::Executor& executor() const { return executor_; }

 private:
  void bind(const Call& call);
  engine::Buffer scaled_input(const Call& call);
  Store store_of(uint64_t bytes) const {
    return bytes > around_->cache_share ? Store::streaming : Store::cached;
  }
  bool exported() const;

  const Around* around_;
  std::vector<Call> calls_;
  std::shared_ptr<const Plan> plan_;
  uint32_t signature_ = 0;
  bool again_ = false;
  engine::Executor executor_;
  engine::Binding binding_;
  std::vector<std::byte> scaled_;
};

// The last few, by what is called.
class BoundCalls {
 public:
  explicit BoundCalls(const Around& around) : bound_(kBound, Bound(around)) {}
  BoundCalls(const BoundCalls&) = delete;
  BoundCalls& operator=(const BoundCalls&) = delete;
  Bound& of(const Call& call) { return bound_[place_of(call)]; }

 private:
  // Large ones share a place, and so their scratch: they do not miss a lookup.
  static constexpr size_t kBound = 9, kLargeBytes = 256 * 1024;
  static size_t place_of(const Call& call) {
    if (call.count > kLargeBytes / size_of(call.type)) return 0;
    const size_t mixed = (reinterpret_cast<uintptr_t>(call.send) >> 4) * 3 +
                         (reinterpret_cast<uintptr_t>(call.recv) >> 4) * 5 + call.count * 7 +
                         call.root + static_cast<size_t>(call.collective) * 11;
    return 1 + (mixed ^ mixed >> 7) % (kBound - 1);
  }

  std::vector<Bound> bound_;
};

}  // namespace hcomm::comm
