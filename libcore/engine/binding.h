// SPDX-License-Identifier: Apache-2.0
// Binding: a program's chunks in the memory of one call. A table of buffers (input, output, then
// one a send or receive of a group), each made of blocks, and the arithmetic from (slice, tile) to
// segments. Value, rebound for every call; no allocation once warm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/memory.h"
#include "schedule/schedule.h"
#include "transport/transport.h"

namespace hcomm::engine {

// Elements of a block that a tile, or one of its parts, covers.
struct Range {
  size_t first = 0, count = 0;
};

// Part `part` of `parts` of `length` elements: edges at multiples of 16 elements where parts are
// long enough, so that kernels and cache lines are not split. Pure: the same on all ranks.
inline Range part_range(size_t length, uint32_t part, uint32_t parts) {
  if (parts == 1) return {0, length};
  const auto edge = [&](uint32_t index) {
    const size_t at = static_cast<size_t>(static_cast<unsigned __int128>(length) * index / parts);
    return index < parts && length / parts >= 64 ? at & ~size_t{15} : at;
  };
  const size_t first = edge(part);
  return {first, edge(part + 1) - first};
}

struct Buffer {
  std::byte* data = nullptr;
  size_t block_elements = 0;          // when counts is null
  const size_t* counts = nullptr;     // of each block
  const size_t* displs = nullptr;     // of each block, in elements; null: packed
  std::optional<Exported> exported;   // when peers can map all of it

  size_t count_of(uint32_t block) const { return counts ? counts[block] : block_elements; }
  size_t first_of(uint32_t block) const;
};

class Binding {
 public:
  std::vector<Buffer> buffers;  // [kInput], [kOutput], unused [kScratch], 3...
  size_t element_bytes = 1;
  size_t tile_elements = SIZE_MAX;  // of a block
  uint32_t parts = 1;

  // Tiles that this call takes: at least one.
  size_t tiles(const schedule::Shape& shape) const;
  // Bytes of scratch chunk i in any tile, a multiple of a cache line.
  size_t scratch_bytes(schedule::Slice mirror) const;
  // Where one chunk of buffer lies in tile; an empty chunk has a null address.
  transport::Segment chunk(uint16_t buffer, uint32_t index, size_t tile) const;
  // Bytes of the chunk that a scratch chunk mirrors.
  size_t mirrored_bytes(schedule::Slice mirror, size_t tile) const;
};

}  // namespace hcomm::engine
