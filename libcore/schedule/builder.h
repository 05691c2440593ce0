// SPDX-License-Identifier: Apache-2.0
// The Builder: how an algorithm writes the schedule of one rank. The author writes the textbook
// program of rank b.rank(): sends, receives, copies, reductions, in order; the Builder infers what
// each step must wait for from the last writer and the readers of each chunk (read after write,
// write after read, write after write; chunks that are the same memory in place count as one).
// Authors write no dependency.
//
// Written from the view of one rank, not of all: building costs what that rank does, and the
// checker matches independently built sides.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::schedule {

class Builder {
 public:
  explicit Builder(const Shape& shape);

  const Shape& shape() const { return schedule_.shape; }
  uint32_t rank() const { return schedule_.shape.rank; }
  uint32_t ranks() const { return schedule_.shape.ranks; }
  uint32_t root() const { return schedule_.shape.root; }

  // Chunks a block; before the first slice. Default 1.
  void parts(uint32_t count);

  Slice input(uint32_t block = 0) const;  // all parts of a block
  Slice output(uint32_t block = 0) const;
  Slice input_part(uint32_t block, uint32_t part, uint32_t count = 1) const;
  Slice output_part(uint32_t block, uint32_t part, uint32_t count = 1) const;
  // Fresh scratch that mirrors `like` (any slice of any buffer) chunk by chunk.
  Slice scratch(Slice like);
  // As scratch, for data of a block of the collective that this rank has in neither input nor
  // output (a tree node of gather that forwards block b): the mirror names the block of the root's
  // side.
  Slice scratch_block(uint32_t block);
  Slice token();  // an empty scratch chunk: a message without data

  void send(uint32_t peer, Slice what);
  void send(std::span<const uint32_t> peers, Slice what);  // one multicast; no peer twice
  void recv(uint32_t peer, Slice to);
  void copy(Slice to, Slice from);          // nothing when both are the same memory
  void reduce(Slice to, Slice a, Slice b);  // to = a op b

  Schedule finish(std::string_view algorithm, Order order);

 private:
  struct Chunk {  // who touched it last
    int32_t writer = -1;
    std::vector<uint32_t> readers;
  };
  Chunk& track(uint16_t buffer, uint32_t chunk);
  void read(Slice slice);
  void write(Slice slice);
  void add(Step step, std::span<const uint32_t> peers);

  Schedule schedule_;
  std::vector<Chunk> tracked_[3];
  std::vector<uint32_t> pending_needs_;
};

// The subslice of `count` chunks from `first` on.
constexpr Slice sub(Slice slice, uint32_t first, uint32_t count = 1) {
  return {slice.buffer, slice.chunk + first, count};
}

}  // namespace hcomm::schedule
