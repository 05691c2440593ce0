// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/shared_ring.h"

#include <algorithm>

#include "base/bytes.h"
#include "transport/shm/channel.h"

namespace hcomm::transport {

namespace {
constexpr uint64_t kNowhere = UINT64_MAX;
}  // namespace

SharedRing::Part SharedRing::next(Outgoing& message, size_t most, Copy copy) {
  Fanout& fanout = *message.fanout;
  if (message.taken == fanout.last) {  // nobody has had it yet
    const size_t bytes = std::min(most, message.bytes - message.done);
    const uint64_t at = place(bytes);
    if (at == kNowhere) return {};
    gather({message.segments, message.segment_count}, fanout.position, {ring_ + at, bytes}, copy);
    fragment(next_) = {at, bytes, used_, &fanout, fanout.channels};
    if (fanout.first == 0) fanout.first = next_;
    fanout.last = next_++;
  }
  // Fragments of other messages may lie between those of this one.
  uint64_t number = std::max({message.taken + 1, fanout.first, oldest_});
  while (fragment(number).of != &fanout) number++;
  message.taken = number;
  return {number, fragment(number).at, fragment(number).bytes};
}

bool SharedRing::full(uint64_t bytes) const {
  return next_ - oldest_ == kFragments || used_ + bytes - freed_ > ring_bytes_;
}

// Where the next fragment goes; kNowhere: nothing is free.
uint64_t SharedRing::place(size_t bytes) {
  const uint64_t taken = round_up(bytes, kCacheLine);
  const bool wraps = at_ + taken > ring_bytes_;
  const uint64_t with_end = taken + (wraps ? ring_bytes_ - at_ : 0);
  if (full(with_end)) {
    for (ShmWriter* writer : writers_) writer->look();
    if (full(with_end)) return kNowhere;
  }
  const uint64_t at = wraps ? 0 : at_;
  at_ = at + taken;
  used_ += with_end;
  return at;
}

void SharedRing::passed(uint64_t number) {
  fragment(number).left--;
  for (; oldest_ != next_ && fragment(oldest_).left == 0; oldest_++)
    freed_ = fragment(oldest_).used_after;
}

}  // namespace hcomm::transport
