// SPDX-License-Identifier: Apache-2.0
// The arithmetic from chunks to memory: parts cover their block exactly, tiles cover their message
// exactly, lengths beyond 2^31 elements do not wrap.
#include "engine/binding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hcomm::engine {
namespace {

using schedule::Collective;
using schedule::kInput;
using schedule::kOutput;

TEST(Binding, PartsCoverABlock) {
  for (const size_t length : {0ul, 1ul, 5ul, 63ul, 64ul, 1000ul, 4096ul, 100003ul, 1ul << 33})
    for (const uint32_t parts : {1u, 2u, 3u, 7u, 8u, 64u, 1000u}) {
      size_t next = 0;
      for (uint32_t part = 0; part < parts; part++) {
        const Range range = part_range(length, part, parts);
        EXPECT_EQ(range.first, next) << length << " in " << parts;
        next = range.first + range.count;
      }
      EXPECT_EQ(next, length);
    }
}

// Every byte of the blocks is in exactly one chunk of one tile.
TEST(Binding, TilesAndPartsCoverTheBlocksOnce) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 200; round++) {
    const auto ranks = static_cast<uint32_t>(1 + random() % 6);
    std::vector<size_t> counts(ranks), displs(ranks);
    size_t total = 0;
    for (uint32_t i = 0; i < ranks; i++) {
      counts[i] = random() % 300;
      displs[i] = total + random() % 3;
      total = displs[i] + counts[i];
    }
    std::vector<std::byte> memory(total * 4 + 4), touched(memory.size());
    Binding binding;
    binding.buffers.resize(3);
    binding.buffers[kInput].block_elements = counts[0];
    binding.buffers[kOutput] = {.data = memory.data(), .counts = counts.data(),
                                .displs = displs.data()};
    binding.element_bytes = 4;
    binding.parts = static_cast<uint32_t>(1 + random() % 5);
    binding.tile_elements = 1 + random() % 100;
    const schedule::Shape shape{.collective = Collective::all_gather, .varied = true,
                                .ranks = ranks};
    for (size_t tile = 0; tile < binding.tiles(shape); tile++)
      for (uint32_t chunk = 0; chunk < ranks * binding.parts; chunk++) {
        const transport::Segment at = binding.chunk(kOutput, chunk, tile);
        EXPECT_LE(at.bytes, binding.scratch_bytes({kOutput, chunk, 1}));
        for (size_t i = 0; i < at.bytes; i++) {
          std::byte& byte = touched[static_cast<size_t>(at.data - memory.data()) + i];
          EXPECT_EQ(byte, std::byte{0});
          byte = std::byte{1};
        }
      }
    for (uint32_t block = 0; block < ranks; block++)
      for (size_t i = displs[block] * 4; i < (displs[block] + counts[block]) * 4; i++)
        EXPECT_EQ(touched[i], std::byte{1});
  }
}

TEST(Binding, BIG_03_LengthsPast2To31DoNotWrap) {
  Binding binding;
  binding.buffers.resize(3);
  const size_t count = (size_t{1} << 31) + 12345;
  binding.buffers[kInput] = {.block_elements = count};
  binding.buffers[kOutput] = {.block_elements = count};
  binding.tile_elements = 1 << 20;
  binding.parts = 3;
  const schedule::Shape shape{.collective = Collective::gather, .ranks = 4, .root = 0};
  EXPECT_EQ(binding.tiles(shape), 2049u);
  size_t total = 0;
  for (size_t tile = 0; tile < 2049; tile++)
    for (uint32_t part = 0; part < 3; part++)
      total += binding.chunk(kOutput, 3 * 3 + part, tile).bytes;
  EXPECT_EQ(total, count);
  const transport::Segment last = binding.chunk(kOutput, 3 * 3 + 2, 2048);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(last.data) + last.bytes, 4 * count);
}

}  // namespace
}  // namespace hcomm::engine
