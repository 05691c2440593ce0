// SPDX-License-Identifier: Apache-2.0
#include "engine/binding.h"

#include <algorithm>

#include "base/bytes.h"

namespace hcomm::engine {

using schedule::kInput;
using schedule::kNothing;
using schedule::kOutput;

namespace {

Range tile_range(size_t elements, size_t tile, size_t tile_elements) {
  if (tile == 0 && elements <= tile_elements) return {0, elements};
  const size_t first = std::min(tile * tile_elements, elements);
  return {first, std::min(tile_elements, elements - first)};
}

}  // namespace

size_t Buffer::first_of(uint32_t block) const {
  if (displs) return displs[block];
  if (!counts) return block * block_elements;
  size_t first = 0;
  for (uint32_t i = 0; i < block; i++) first += counts[i];
  return first;
}

size_t Binding::tiles(const schedule::Shape& shape) const {
  size_t longest = 0;
  for (const uint16_t side : {kInput, kOutput}) {
    const Buffer& buffer = buffers[side];
    const uint32_t blocks = buffer.counts ? blocks_of(shape, side) : 1;
    for (uint32_t block = 0; block < blocks; block++)
      longest = std::max(longest, buffer.count_of(block));
  }
  return std::max<size_t>(1, longest == 0 ? 1 : (longest - 1) / tile_elements + 1);
}

size_t Binding::scratch_bytes(schedule::Slice mirror) const {
  if (mirror.buffer == kNothing) return 0;
  const size_t elements =
      std::min(tile_elements, buffers[mirror.buffer].count_of(mirror.chunk / parts));
  const size_t part = parts == 1 ? elements : elements / parts + 16;
  return round_up(std::min(part, elements) * element_bytes, kCacheLine);
}

transport::Segment Binding::chunk(uint16_t index, uint32_t chunk, size_t tile) const {
  const Buffer& buffer = buffers[index];
  const uint32_t block = parts == 1 ? chunk : chunk / parts;
  const uint32_t part = parts == 1 ? 0 : chunk % parts;
  const Range whole = tile_range(buffer.count_of(block), tile, tile_elements);
  const Range range = part_range(whole.count, part, parts);
  if (range.count == 0) return {};
  const size_t first = (block == 0 && !buffer.displs ? 0 : buffer.first_of(block)) + whole.first +
                       range.first;
  return {buffer.data + first * element_bytes, range.count * element_bytes};
}

size_t Binding::mirrored_bytes(schedule::Slice mirror, size_t tile) const {
  if (mirror.buffer == kNothing) return 0;
  const uint32_t block = mirror.chunk / parts, part = mirror.chunk % parts;
  const Range whole =
      tile_range(buffers[mirror.buffer].count_of(block), tile, tile_elements);
  return part_range(whole.count, part, parts).count * element_bytes;
}

}  // namespace hcomm::engine
