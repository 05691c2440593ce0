// SPDX-License-Identifier: Apache-2.0
// Chain: rank after rank. One link in and one out of each rank, one block over each; the tiles of a
// large message follow one another down the chain, which is what makes it fast.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

void broadcast(Builder& b) {
  const Circle circle{b.ranks(), b.root()};
  const uint32_t position = circle.position_of(b.rank());
  if (position > 0) b.recv(circle.rank_at(position - 1), b.output());
  if (position < b.ranks() - 1)
    b.send(circle.rank_at(position + 1), position == 0 ? b.input() : b.output());
  if (position == 0) b.copy(b.output(), b.input());
}

void reduce(Builder& b) {
  const Circle circle{b.ranks(), b.root()};
  const uint32_t position = circle.position_of(b.rank());
  Slice sum = b.input();
  if (position < b.ranks() - 1) {
    const Slice theirs = recv_scratch(b, circle.rank_at(position + 1), b.input());
    sum = position == 0 ? b.output() : b.scratch(b.input());
    b.reduce(sum, b.input(), theirs);
  }
  if (position > 0) b.send(circle.rank_at(position - 1), sum);
}

constexpr std::string_view kSource = "Watts, van de Geijn 1995";
constexpr Algorithm kAlgorithms[] = {
    {"chain", Collective::broadcast, Order::any, kSource, fits_equal_blocks, broadcast},
    {"chain", Collective::reduce, Order::any, kSource, fits_equal_blocks, reduce},
};

}  // namespace

namespace family {
std::span<const Algorithm> chain() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
