// SPDX-License-Identifier: Apache-2.0
// Ring: each rank talks to its two neighbours only. As many steps as ranks, each byte over each
// link once: for large messages. Rank r ends its reduce-scatter with block (or part) r.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

// The pass that reduces: block(i) is this rank's contribution to block i, `to` gets the whole of
// the own block. What is passed on is a fresh scratch of each step, so no step waits for a reader.
template <typename Block>
void reduce_pass(Builder& b, Slice to, const Block& block) {
  const uint32_t n = b.ranks();
  const Circle circle = around(b);
  Slice sum = block(circle.rank_at(n - 1));
  for (uint32_t step = 1; step < n; step++) {
    b.send(circle.rank_at(1), sum);
    const Slice mine = block(circle.rank_at(n - 1 - step));
    const Slice theirs = recv_scratch(b, circle.rank_at(n - 1), mine);
    sum = step == n - 1 ? to : b.scratch(mine);
    b.reduce(sum, theirs, mine);
  }
}

// The pass that collects: block(i) is where block i is wanted; the own block is in `mine`.
template <typename Block>
void collect_pass(Builder& b, Slice mine, const Block& block) {
  const uint32_t n = b.ranks();
  const Circle circle = around(b);
  Slice passed = mine;
  for (uint32_t step = 1; step < n; step++) {
    b.send(circle.rank_at(1), passed);
    passed = block(circle.rank_at(n - step));
    b.recv(circle.rank_at(n - 1), passed);
  }
}

void all_reduce(Builder& b) {
  b.parts(b.ranks());
  const Slice mine = b.output_part(0, b.rank());
  reduce_pass(b, mine, [&](uint32_t part) { return b.input_part(0, part); });
  collect_pass(b, mine, [&](uint32_t part) { return b.output_part(0, part); });
}

void reduce_scatter(Builder& b) {
  reduce_pass(b, b.output(), [&](uint32_t block) { return b.input(block); });
}

void all_gather(Builder& b) {
  b.copy(b.output(b.rank()), b.input());
  collect_pass(b, b.input(), [&](uint32_t block) { return b.output(block); });
}

constexpr std::string_view kReduce = "Patarasuk, Yuan 2009";
constexpr std::string_view kGather = "Thakur, Rabenseifner, Gropp 2005";
constexpr Algorithm kAlgorithms[] = {
    {"ring", Collective::all_reduce, Order::any, kReduce, fits_equal_blocks, all_reduce},
    {"ring", Collective::reduce_scatter, Order::any, kReduce, fits_all, reduce_scatter},
    {"ring", Collective::all_gather, Order::any, kGather, fits_all, all_gather},
};

}  // namespace

namespace family {
std::span<const Algorithm> ring() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
