// SPDX-License-Identifier: Apache-2.0
// What goes to several peers at once is copied once: into a ring of the sender that all peers read,
// one a slot. Its fragments are told to each peer in a line of that peer's channel, like any other;
// the place of a fragment is free again when all have passed theirs. Owned by the endpoint, used by
// the writers of its channels. Absent: lines.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transport/shm/node_memory.h"
#include "transport/transport.h"

namespace hcomm::transport {

class ShmWriter;

class SharedRing {
 public:
  struct Part {
    uint64_t number = 0;  // of the fragment in this ring, from 1; 0: there is no room for it now
    uint64_t at = 0, bytes = 0;
  };

  SharedRing(const NodeMemory& memory, uint32_t self, uint32_t slot)
      : ring_(memory.ring(self, slot, self)), ring_bytes_(memory.layout().ring_bytes) {}

  // Those who call `passed`.
  void serve(ShmWriter& writer) { writers_.push_back(&writer); }
  // The next fragment of `message` for its peer, `taken` with this: one that was copied for another
  // peer, or, copied now, the next of at most `most` bytes.
  Part next(Outgoing& message, size_t most, Copy copy);
  // A peer has passed the fragment.
  void passed(uint64_t number);

 private:
  static constexpr uint64_t kFragments = 32;
  struct Fragment {
    uint64_t at = 0, bytes = 0, used_after = 0;
    const Fanout* of = nullptr;
    uint32_t left = 0;  // peers that have not passed it
  };
  Fragment& fragment(uint64_t number) { return fragments_[number % kFragments]; }
  uint64_t place(size_t bytes);
  bool full(uint64_t bytes) const;

  std::byte* const ring_;
  const uint64_t ring_bytes_;
  std::vector<ShmWriter*> writers_;
  std::array<Fragment, kFragments> fragments_;
  uint64_t oldest_ = 1, next_ = 1;  // numbers
  uint64_t at_ = 0, used_ = 0, freed_ = 0;  // as ShmWriter's
};

}  // namespace hcomm::transport
