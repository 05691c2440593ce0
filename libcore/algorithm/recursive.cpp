// SPDX-License-Identifier: Apache-2.0
// Recursive doubling and halving on a cube of ranks: log2(ranks) exchanges, of all that a rank has
// (doubling, small messages) or of half as much each time (halving, large ones). Ranks beyond the
// power of two bring their data to a corner of the cube and fetch the result there.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

// Chunks from `first` on of what a rank holds: `slice` is where they lie.
struct Held {
  Slice slice;
  uint32_t first = 0;
  Slice at(uint32_t chunk, uint32_t count) const { return sub(slice, chunk - first, count); }
};

// A corner's own contribution with its partner's.
Slice with_partner(Builder& b, const Cube& cube, Slice own) {
  if (!cube.serves()) return own;
  const Slice theirs = recv_scratch(b, b.rank() + 1, own);
  const Slice sum = b.scratch(own);
  b.reduce(sum, own, theirs);
  return sum;
}

// Both sides of an exchange put the operand of the lower corner first, so that they make one tree.
void reduce_across(Builder& b, Slice to, Slice own, Slice theirs, uint32_t own_bit) {
  if (own_bit == 0)
    b.reduce(to, own, theirs);
  else
    b.reduce(to, theirs, own);
}

void all_reduce_doubling(Builder& b) {
  const Cube cube(b);
  if (cube.surplus()) {
    b.send(b.rank() - 1, b.input());
    return b.recv(b.rank() - 1, b.output());
  }
  Slice sum = with_partner(b, cube, b.input());
  for (uint32_t bit = 1; bit < cube.corners(); bit *= 2) {
    const uint32_t peer = cube.first(cube.corner() ^ bit);
    b.send(peer, sum);
    const Slice theirs = recv_scratch(b, peer, sum);
    const Slice to = bit * 2 == cube.corners() ? b.output() : b.scratch(sum);
    reduce_across(b, to, sum, theirs, cube.corner() & bit);
    sum = to;
  }
  if (cube.serves()) b.send(b.rank() + 1, b.output());
}

// The parts are halved by the lowest bit first, so most bytes go to the nearest corners.
void all_reduce_halving_doubling(Builder& b) {
  const Cube cube(b);
  const uint32_t corners = cube.corners();
  b.parts(corners);
  if (cube.surplus()) {
    b.send(b.rank() - 1, b.input());
    return b.recv(b.rank() - 1, b.output());
  }
  Held sum{with_partner(b, cube, b.input())};
  for (uint32_t bit = 1; bit < corners; bit *= 2) {
    const uint32_t peer = cube.first(cube.corner() ^ bit), half = sum.slice.count / 2;
    const bool upper = cube.corner() & bit;
    const uint32_t keep = sum.first + (upper ? half : 0), give = sum.first + (upper ? 0 : half);
    b.send(peer, sum.at(give, half));
    const Slice own = sum.at(keep, half), theirs = recv_scratch(b, peer, own);
    sum = {half == 1 ? b.output_part(0, keep) : b.scratch(own), keep};
    reduce_across(b, sum.slice, own, theirs, cube.corner() & bit);
  }
  uint32_t first = sum.first;
  for (uint32_t count = 1; count < corners; count *= 2) {
    const uint32_t peer = cube.first(cube.corner() ^ (corners / 2 / count));
    b.send(peer, b.output_part(0, first, count));
    b.recv(peer, b.output_part(0, first ^ count, count));
    first &= ~count;
  }
  if (cube.serves()) b.send(b.rank() + 1, b.output());
}

// Corners are halved by the highest bit first: those that stay are a run, and so are their blocks.
void reduce_scatter_halving(Builder& b) {
  const Cube cube(b);
  const Slice all = run(b.input(0), b.ranks());
  if (cube.surplus()) {
    b.send(b.rank() - 1, all);
    return b.recv(b.rank() - 1, b.output());
  }
  Held sum{with_partner(b, cube, all)};
  for (uint32_t bit = cube.corners() / 2; bit > 0; bit /= 2) {
    const uint32_t corner = cube.corner() ^ bit, peer = cube.first(corner);
    const Cube::Run keep = cube.run_with(cube.corner(), bit), give = cube.run_with(corner, bit);
    b.send(peer, sum.at(give.first, give.count));
    const Slice own = sum.at(keep.first, keep.count), theirs = recv_scratch(b, peer, own);
    sum = {keep.count == 1 ? b.output() : b.scratch(own), keep.first};
    reduce_across(b, sum.slice, own, theirs, cube.corner() & bit);
  }
  if (!cube.serves()) return;
  b.send(b.rank() + 1, sum.at(b.rank() + 1, 1));
  b.copy(b.output(), sum.at(b.rank(), 1));
}

void all_gather_doubling(Builder& b) {
  const Cube cube(b);
  const Slice all = run(b.output(0), b.ranks());
  if (cube.surplus()) {
    b.send(b.rank() - 1, b.input());
    return b.recv(b.rank() - 1, all);
  }
  b.copy(b.output(b.rank()), b.input());
  if (cube.serves()) b.recv(b.rank() + 1, b.output(b.rank() + 1));
  for (uint32_t count = 1; count < cube.corners(); count *= 2) {
    const uint32_t corner = cube.corner() ^ count, peer = cube.first(corner);
    const Cube::Run mine = cube.run_with(cube.corner(), count);
    const Cube::Run theirs = cube.run_with(corner, count);
    b.send(peer, mine.count == 1 ? b.input() : sub(all, mine.first, mine.count));
    b.recv(peer, sub(all, theirs.first, theirs.count));
  }
  if (cube.serves()) b.send(b.rank() + 1, all);
}

constexpr std::string_view kDoubling = "Thakur, Rabenseifner, Gropp 2005";
constexpr std::string_view kHalving = "Rabenseifner 2004";
constexpr Algorithm kAlgorithms[] = {
    {"recursive_doubling", Collective::all_reduce, Order::any, kDoubling, fits_equal_blocks,
     all_reduce_doubling},
    {"halving_doubling", Collective::all_reduce, Order::any, kHalving, fits_equal_blocks,
     all_reduce_halving_doubling},
    {"halving", Collective::reduce_scatter, Order::any, kDoubling, fits_all,
     reduce_scatter_halving},
    {"recursive_doubling", Collective::all_gather, Order::any, kDoubling, fits_all,
     all_gather_doubling},
};

}  // namespace

namespace family {
std::span<const Algorithm> recursive() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
