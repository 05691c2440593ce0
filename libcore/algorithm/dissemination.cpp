// SPDX-License-Identifier: Apache-2.0
// Dissemination: a barrier as gossip. Each round a rank passes on the tokens that it has and so
// doubles what it has; it leaves with the tokens of all.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

void barrier(Builder& b) {
  const uint32_t n = b.ranks();
  const Slice all = tokens(b, n);
  for (uint32_t have = 1, more = 0; have < n; have += more) {
    more = std::min(have, n - have);
    b.send(around(b).rank_at(n - have), sub(all, 0, more));
    b.recv(around(b).rank_at(have), sub(all, have, more));
  }
}

constexpr Algorithm kAlgorithms[] = {
    {"dissemination", Collective::barrier, Order::any, "Hensgen, Finkel, Manber 1988",
     fits_equal_blocks, barrier},
};

}  // namespace

namespace family {
std::span<const Algorithm> dissemination() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
