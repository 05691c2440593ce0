// SPDX-License-Identifier: Apache-2.0
// Bruck: about log2(ranks) rounds for any number of ranks, each with ranks at a distance of a power
// of two: for small messages.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

// Calls visit(first, count) for the one or two runs that make `count` blocks from `first` around
// the circle.
template <typename Visit>
void for_runs(uint32_t ranks, uint32_t first, uint32_t count, const Visit& visit) {
  const uint32_t before_wrap = std::min(count, ranks - first);
  visit(first, before_wrap);
  if (before_wrap < count) visit(0u, count - before_wrap);
}

// A rank always has the blocks of itself and of the next ranks, where the output wants them: a
// round that wraps is two messages rather than a rotation at the end.
void all_gather(Builder& b) {
  const uint32_t n = b.ranks();
  b.copy(b.output(b.rank()), b.input());
  for (uint32_t have = 1, more = 0; have < n; have += more) {
    more = std::min(have, n - have);
    const uint32_t to = around(b).rank_at(n - have), from = around(b).rank_at(have);
    for_runs(n, b.rank(), more, [&](uint32_t first, uint32_t count) {
      b.send(to, have == 1 ? b.input() : run(b.output(first), count));
    });
    for_runs(n, from, more,
             [&](uint32_t first, uint32_t count) { b.recv(from, run(b.output(first), count)); });
  }
}

// at[j] is where the block lies that has j more ranks to go. The round of bit k moves all those by
// 2^k ranks whose j has it, packed into one message; what comes is used where it landed.
void all_to_all(Builder& b) {
  const uint32_t n = b.ranks();
  const Circle circle = around(b);
  std::vector<Slice> at(n);
  for (uint32_t j = 0; j < n; j++) at[j] = b.input(circle.rank_at(j));
  for (uint32_t bit = 1; bit < n; bit *= 2) {
    std::vector<uint32_t> moved;
    std::vector<Slice> packed, landed;
    for (uint32_t j = bit; j < n; j++)
      if (j & bit) moved.push_back(j);
    for (const uint32_t j : moved) packed.push_back(b.scratch(at[j]));
    for (const uint32_t j : moved) landed.push_back(b.scratch(at[j]));
    for (size_t i = 0; i < moved.size(); i++) b.copy(packed[i], at[moved[i]]);
    const auto count = static_cast<uint32_t>(moved.size());
    b.send(circle.rank_at(bit), run(packed[0], count));
    b.recv(circle.rank_at(n - bit), run(landed[0], count));
    for (size_t i = 0; i < moved.size(); i++) at[moved[i]] = landed[i];
  }
  for (uint32_t j = 0; j < n; j++) b.copy(b.output(circle.rank_at(n - j)), at[j]);
}

constexpr std::string_view kSource = "Bruck et al. 1997";
constexpr Algorithm kAlgorithms[] = {
    {"bruck", Collective::all_gather, Order::any, kSource, fits_all, all_gather},
    {"bruck", Collective::all_to_all, Order::any, kSource, fits_equal_blocks, all_to_all},
};

}  // namespace

namespace family {
std::span<const Algorithm> bruck() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
