// SPDX-License-Identifier: Apache-2.0
// Rank arithmetic and idioms that the families share: rings, trees, the fold of surplus ranks, the
// fold in rank order. Pure; used by libcore/algorithm/*.cpp only. Absent: anything that one family
// alone needs.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "algorithm/algorithm.h"

namespace hcomm::algorithm {

using schedule::Builder;
using schedule::Collective;
using schedule::Order;
using schedule::Shape;
using schedule::Slice;
using schedule::sub;

inline bool fits_all(const Shape&) {
  return true;
}
inline bool fits_equal_blocks(const Shape& shape) {
  return !shape.varied;
}

// Ranks in a circle, counted from `origin`: position 0 is the origin.
struct Circle {
  uint32_t ranks, origin;
  uint32_t rank_at(uint32_t position) const { return (origin + position) % ranks; }
  uint32_t position_of(uint32_t rank) const { return (rank + ranks - origin) % ranks; }
};

// The circle seen from this rank: rank_at(1) is the next one, rank_at(ranks - 1) the previous one.
inline Circle around(const Builder& b) {
  return {b.ranks(), b.rank()};
}

// Everybody else, beginning with the next rank, so that not all begin with the same one.
inline std::vector<uint32_t> others(const Builder& b) {
  std::vector<uint32_t> ranks;
  for (uint32_t i = 1; i < b.ranks(); i++) ranks.push_back(around(b).rank_at(i));
  return ranks;
}

// `count` blocks, of which `first` is the first.
inline Slice run(Slice first, uint32_t count) {
  return {first.buffer, first.chunk, first.count * count};
}

inline Slice tokens(Builder& b, uint32_t count) {
  Slice all = b.token();
  for (uint32_t i = 1; i < count; i++) b.token();
  all.count = count;
  return all;
}

inline Slice recv_scratch(Builder& b, uint32_t peer, Slice like) {
  const Slice to = b.scratch(like);
  b.recv(peer, to);
  return to;
}

// The binomial tree over positions 0 .. size-1: a parent is its child without the lowest set bit,
// and the subtree of a position is a run of positions that begins with it.
class Binomial {
 public:
  Binomial(uint32_t size, uint32_t position) : size_(size), position_(position) {}
  uint32_t parent() const { return position_ & (position_ - 1); }
  std::vector<uint32_t> children() const {  // the smallest subtree first
    std::vector<uint32_t> positions;
    for (uint32_t step = 1; step < reach() && position_ + step < size_; step *= 2)
      positions.push_back(position_ + step);
    return positions;
  }
  uint32_t subtree() const { return std::min(reach(), size_ - position_); }

 private:
  uint32_t reach() const {
    return position_ == 0 ? std::bit_ceil(size_) : position_ & (~position_ + 1);
  }
  uint32_t size_, position_;
};

// The largest power of two of ranks does the work as a cube; each rank beyond it is the partner of
// a rank of the cube, which does its share as well. Partners stand side by side, so what a run of
// corners is responsible for is a run of ranks: [first(v), first(v + 1)) for corner v.
class Cube {
 public:
  explicit Cube(const Builder& b)
      : corners_(std::bit_floor(b.ranks())), pairs_(b.ranks() - corners_), rank_(b.rank()) {}
  uint32_t corners() const { return corners_; }
  uint32_t corner() const { return rank_ < 2 * pairs_ ? rank_ / 2 : rank_ - pairs_; }
  uint32_t first(uint32_t corner) const { return corner + std::min(corner, pairs_); }
  struct Run {  // of ranks
    uint32_t first, count;
  };
  // The ranks that the aligned run of `corners` corners with this one in it is responsible for.
  Run run_with(uint32_t corner, uint32_t corners) const {
    const uint32_t low = corner & ~(corners - 1);
    return {first(low), first(low + corners) - first(low)};
  }
  bool surplus() const { return rank_ < 2 * pairs_ && rank_ % 2 == 1; }  // served by rank - 1
  bool serves() const { return rank_ < 2 * pairs_ && rank_ % 2 == 0; }   // serves rank + 1

 private:
  uint32_t corners_, pairs_, rank_;
};

// to = terms[0] op terms[1] op ..., from the left: a run of steps that the engine makes one pass.
inline void fold(Builder& b, Slice to, std::span<const Slice> terms) {
  Slice sum = terms[0];
  for (const Slice term : terms.subspan(1)) {
    b.reduce(to, sum, term);
    sum = to;
  }
}

// Receives what everybody has for `own` and folds it into `to` in rank order. In place, `to` is the
// memory of `own`, so what precedes that in the fold is summed elsewhere.
inline void gather_and_fold(Builder& b, Slice to, Slice own) {
  std::vector<Slice> terms(b.ranks());
  for (uint32_t i = 0; i < b.ranks(); i++) terms[i] = i == b.rank() ? own : recv_scratch(b, i, own);
  std::span<Slice> rest = terms;
  if (b.shape().in_place && b.rank() > 1) {
    const Slice head = b.scratch(own);
    fold(b, head, rest.first(b.rank()));
    rest = rest.subspan(b.rank() - 1);
    rest[0] = head;
  }
  fold(b, to, rest);
}

}  // namespace hcomm::algorithm
