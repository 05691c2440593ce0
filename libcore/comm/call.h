// SPDX-License-Identifier: Apache-2.0
// One call of the C API, checked and normalised: what api hands to a communicator. Value; arrays
// are the caller's, or an asynchronous task's copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "datatype/types.h"
#include "schedule/schedule.h"

namespace hcomm::comm {

// Lengths of the blocks of a V collective; null where every block has `count` elements.
struct Blocks {
  const size_t* counts = nullptr;
  const size_t* displs = nullptr;  // null: packed
  bool operator==(const Blocks&) const = default;
};

struct Call {
  schedule::Collective collective = schedule::Collective::barrier;
  bool varied = false;
  bool in_place = false;
  bool sending = false;  // of a point_to_point call
  Type type = Type::uint8;
  Op op = Op::sum;
  uint32_t root = 0;  // or the peer
  size_t count = 0;   // of a block, where blocks are equal
  const void* send = nullptr;
  void* recv = nullptr;
  Blocks send_blocks, recv_blocks;
  unsigned char factor[8] = {};  // of premul_sum, one element
  uint64_t cut = 0;              // of several calls in one, a hash of their counts
  bool operator==(const Call&) const = default;
};

}  // namespace hcomm::comm
