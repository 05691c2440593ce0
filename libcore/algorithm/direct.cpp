// SPDX-License-Identifier: Apache-2.0
// Direct: whoever has data sends it at once to whoever needs it. The fewest steps; least latency
// for small messages, and least copying where a transport multicasts. Pairwise is the all-to-all
// that orders the same messages as rounds of exchanges.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

void all_reduce(Builder& b) {
  b.send(others(b), b.input());
  gather_and_fold(b, b.output(), b.input());
}

void reduce(Builder& b) {
  if (b.rank() == b.root())
    gather_and_fold(b, b.output(), b.input());
  else
    b.send(b.root(), b.input());
}

void reduce_scatter(Builder& b) {
  for (const uint32_t peer : others(b)) b.send(peer, b.input(peer));
  gather_and_fold(b, b.output(), b.input(b.rank()));
}

void broadcast(Builder& b) {
  if (b.rank() != b.root()) return b.recv(b.root(), b.output());
  b.send(others(b), b.input());
  b.copy(b.output(), b.input());
}

void all_gather(Builder& b) {
  b.send(others(b), b.input());
  b.copy(b.output(b.rank()), b.input());
  for (const uint32_t peer : others(b)) b.recv(peer, b.output(peer));
}

void gather(Builder& b) {
  if (b.rank() != b.root()) return b.send(b.root(), b.input());
  b.copy(b.output(b.rank()), b.input());
  for (const uint32_t peer : others(b)) b.recv(peer, b.output(peer));
}

void scatter(Builder& b) {
  if (b.rank() != b.root()) return b.recv(b.root(), b.output());
  for (const uint32_t peer : others(b)) b.send(peer, b.input(peer));
  b.copy(b.output(), b.input(b.rank()));
}

// In place, what comes from a peer lands where lies what goes to it, and two ranks that both wait
// for their sends would wait for ever: what goes is first put aside.
void all_to_all(Builder& b) {
  for (const uint32_t peer : others(b)) {
    Slice going = b.input(peer);
    if (b.shape().in_place) {
      going = b.scratch(b.input(peer));
      b.copy(going, b.input(peer));
    }
    b.send(peer, going);
  }
  b.copy(b.output(b.rank()), b.input(b.rank()));
  for (const uint32_t peer : others(b)) b.recv(peer, b.output(peer));
}

// Round k pairs the ranks whose sum is k modulo n; a rank that would meet itself is idle. In place,
// one of the two waits for its send and receives in place, the other puts aside what comes; a rank
// is the one in half of its rounds and the other in the rest.
void all_to_all_pairwise(Builder& b) {
  const uint32_t n = b.ranks(), rank = b.rank();
  b.copy(b.output(rank), b.input(rank));
  for (uint32_t round = 0; round < n; round++) {
    const uint32_t peer = (round + n - rank) % n;
    if (peer == rank) continue;
    const bool first = (rank < peer) == ((rank + peer) % 2 == 0);
    const bool aside = b.shape().in_place && !first;
    b.send(peer, b.input(peer));
    const Slice landing = aside ? b.scratch(b.output(peer)) : b.output(peer);
    b.recv(peer, landing);
    if (aside) b.copy(b.output(peer), landing);
  }
}

void barrier(Builder& b) {
  b.send(others(b), b.token());
  for (const uint32_t peer : others(b)) b.recv(peer, b.token());
}

constexpr std::string_view kTextbook = "textbook";
constexpr std::string_view kPairwise = "Thakur, Rabenseifner, Gropp 2005";
constexpr Algorithm kAlgorithms[] = {
    {"direct", Collective::all_reduce, Order::rank, kTextbook, fits_equal_blocks, all_reduce},
    {"direct", Collective::reduce, Order::rank, kTextbook, fits_equal_blocks, reduce},
    {"direct", Collective::reduce_scatter, Order::rank, kTextbook, fits_all, reduce_scatter},
    {"direct", Collective::broadcast, Order::any, kTextbook, fits_equal_blocks, broadcast},
    {"direct", Collective::all_gather, Order::any, kTextbook, fits_all, all_gather},
    {"direct", Collective::gather, Order::any, kTextbook, fits_all, gather},
    {"direct", Collective::scatter, Order::any, kTextbook, fits_all, scatter},
    {"direct", Collective::all_to_all, Order::any, kTextbook, fits_all, all_to_all},
    {"pairwise", Collective::all_to_all, Order::any, kPairwise, fits_all, all_to_all_pairwise},
    {"direct", Collective::barrier, Order::any, kTextbook, fits_equal_blocks, barrier},
};

}  // namespace

namespace family {
std::span<const Algorithm> direct() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
