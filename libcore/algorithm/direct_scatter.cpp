// SPDX-License-Identifier: Apache-2.0
// Direct in two hops, for large messages: the block is cut into a part a rank, each rank is
// responsible for its part, and all parts travel at once. Each byte goes over two links however
// many ranks there are, and a reduction is a fold in rank order made in one place.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

// Sends each part of the input to the rank that is responsible for it; folds the own part.
void fold_own_part(Builder& b, Slice to) {
  for (const uint32_t peer : others(b)) b.send(peer, b.input_part(0, peer));
  gather_and_fold(b, to, b.input_part(0, b.rank()));
}

void all_reduce(Builder& b) {
  b.parts(b.ranks());
  const Slice mine = b.output_part(0, b.rank());
  fold_own_part(b, mine);
  b.send(others(b), mine);
  for (const uint32_t peer : others(b)) b.recv(peer, b.output_part(0, peer));
}

void reduce(Builder& b) {
  b.parts(b.ranks());
  if (b.rank() != b.root()) {
    const Slice mine = b.scratch(b.input_part(0, b.rank()));
    fold_own_part(b, mine);
    return b.send(b.root(), mine);
  }
  fold_own_part(b, b.output_part(0, b.rank()));
  for (const uint32_t peer : others(b)) b.recv(peer, b.output_part(0, peer));
}

// The root gives away a part to each other rank, which passes it on to the rest: each link out of
// a rank carries one block in all.
void broadcast(Builder& b) {
  const Circle circle{b.ranks(), b.root()};
  const uint32_t last = b.ranks() - 1, position = circle.position_of(b.rank());
  b.parts(last);
  if (position == 0) {
    for (uint32_t i = 1; i <= last; i++) b.send(circle.rank_at(i), b.input_part(0, i - 1));
    return b.copy(b.output(), b.input());
  }
  const Slice mine = b.output_part(0, position - 1);
  b.recv(b.root(), mine);
  std::vector<uint32_t> rest = others(b);
  std::erase(rest, b.root());
  b.send(rest, mine);
  for (const uint32_t peer : rest) b.recv(peer, b.output_part(0, circle.position_of(peer) - 1));
}

constexpr std::string_view kReduce = "Rabenseifner 2004, each phase as one exchange";
constexpr std::string_view kBroadcast = "Barnett et al. 1994, the collect as one exchange";
constexpr Algorithm kAlgorithms[] = {
    {"direct_scatter", Collective::all_reduce, Order::rank, kReduce, fits_equal_blocks, all_reduce},
    {"direct_scatter", Collective::reduce, Order::rank, kReduce, fits_equal_blocks, reduce},
    {"scatter_allgather", Collective::broadcast, Order::any, kBroadcast, fits_equal_blocks,
     broadcast},
};

}  // namespace

namespace family {
std::span<const Algorithm> direct_scatter() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
