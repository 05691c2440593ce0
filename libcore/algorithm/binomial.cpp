// SPDX-License-Identifier: Apache-2.0
// Binomial tree: log2(ranks) rounds; a rank hears from, or speaks to, each subtree once. The tree
// hangs on the root by positions around the circle.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

struct Place {
  Place(const Builder& b, uint32_t root)
      : circle{b.ranks(), root},
        position(circle.position_of(b.rank())),
        tree(b.ranks(), position) {}
  uint32_t parent() const { return circle.rank_at(tree.parent()); }

  Circle circle;
  uint32_t position;
  Binomial tree;
};

// Reduces towards the root, which gets the result in its output.
void reduce_up(Builder& b, const Place& place) {
  const bool root = place.position == 0;
  std::vector<Slice> terms{b.input()};
  for (const uint32_t child : place.tree.children())
    terms.push_back(recv_scratch(b, place.circle.rank_at(child), b.input()));
  Slice sum = terms[0];
  if (terms.size() > 1) {
    sum = root ? b.output() : b.scratch(b.input());
    fold(b, sum, terms);
  }
  if (!root) b.send(place.parent(), sum);
}

// The root's `what` to everybody's output; the largest subtree, which takes longest, first.
void broadcast_down(Builder& b, const Place& place, Slice what) {
  if (place.position > 0) b.recv(place.parent(), what);
  std::vector<uint32_t> peers = place.tree.children();
  std::reverse(peers.begin(), peers.end());
  for (uint32_t& peer : peers) peer = place.circle.rank_at(peer);
  b.send(peers, what);
}

void reduce(Builder& b) {
  reduce_up(b, Place(b, b.root()));
}

void broadcast(Builder& b) {
  const Place place(b, b.root());
  broadcast_down(b, place, place.position == 0 ? b.input() : b.output());
  if (place.position == 0) b.copy(b.output(), b.input());
}

void all_reduce(Builder& b) {
  const Place place(b, 0);
  reduce_up(b, place);
  broadcast_down(b, place, b.output());
}

// Gather and scatter: where the blocks of this rank's subtree lie. At the root, in its buffer by
// rank; elsewhere the own block in the user's buffer and the rest in scratch by position.
struct Blocks {
  Blocks(Builder& b, const Place& place) : circle(place.circle), first(place.position + 1) {
    if (place.position == 0) {
      rest = b.shape().collective == Collective::gather ? b.output(0) : b.input(0);
      return;
    }
    for (uint32_t i = 1; i < place.tree.subtree(); i++) {
      const Slice block = b.scratch_block(circle.rank_at(place.position + i));
      if (i == 1) rest = block;
    }
  }
  Slice at(uint32_t position, uint32_t count) const {
    const bool root = first == 1;
    return run(sub(rest, root ? circle.rank_at(position) : position - first), count);
  }

  Circle circle;
  uint32_t first;
  Slice rest;
};

// What travels between a rank at `position` and its parent besides its own block: the rest of its
// subtree, in one message, or two where the ranks wrap, since the root has them apart.
template <typename Visit>
void for_rest(const Circle& circle, uint32_t position, const Visit& visit) {
  const uint32_t count = Binomial(circle.ranks, position).subtree() - 1;
  if (count == 0) return;
  const uint32_t before_wrap = std::min(count, circle.ranks - circle.rank_at(position + 1));
  visit(position + 1, before_wrap);
  if (before_wrap < count) visit(position + 1 + before_wrap, count - before_wrap);
}

void gather(Builder& b) {
  const Place place(b, b.root());
  const Blocks blocks(b, place);
  if (place.position == 0) b.copy(b.output(b.rank()), b.input());
  for (const uint32_t child : place.tree.children()) {
    const uint32_t peer = place.circle.rank_at(child);
    b.recv(peer, blocks.at(child, 1));
    for_rest(place.circle, child,
             [&](uint32_t first, uint32_t count) { b.recv(peer, blocks.at(first, count)); });
  }
  if (place.position == 0) return;
  b.send(place.parent(), b.input());
  for_rest(place.circle, place.position, [&](uint32_t first, uint32_t count) {
    b.send(place.parent(), blocks.at(first, count));
  });
}

void scatter(Builder& b) {
  const Place place(b, b.root());
  const Blocks blocks(b, place);
  if (place.position > 0) {
    b.recv(place.parent(), b.output());
    for_rest(place.circle, place.position, [&](uint32_t first, uint32_t count) {
      b.recv(place.parent(), blocks.at(first, count));
    });
  }
  std::vector<uint32_t> children = place.tree.children();
  std::reverse(children.begin(), children.end());
  for (const uint32_t child : children) {
    const uint32_t peer = place.circle.rank_at(child);
    b.send(peer, blocks.at(child, 1));
    for_rest(place.circle, child,
             [&](uint32_t first, uint32_t count) { b.send(peer, blocks.at(first, count)); });
  }
  if (place.position == 0) b.copy(b.output(), b.input(b.rank()));
}

// Up go the tokens of a subtree, down go those of all, so that nobody passes on what it has not.
void barrier(Builder& b) {
  const uint32_t n = b.ranks();
  const Place place(b, 0);
  const Slice subtree = tokens(b, place.position == 0 ? n : place.tree.subtree());
  for (const uint32_t child : place.tree.children())
    b.recv(child, sub(subtree, child - place.position, Binomial(n, child).subtree()));
  if (place.position > 0) b.send(place.parent(), subtree);
  broadcast_down(b, place, place.position == 0 ? subtree : tokens(b, n));
}

constexpr std::string_view kSource = "Thakur, Rabenseifner, Gropp 2005";
constexpr Algorithm kAlgorithms[] = {
    {"tree", Collective::all_reduce, Order::any, kSource, fits_equal_blocks, all_reduce},
    {"binomial", Collective::reduce, Order::any, kSource, fits_equal_blocks, reduce},
    {"binomial", Collective::broadcast, Order::any, kSource, fits_equal_blocks, broadcast},
    {"binomial", Collective::gather, Order::any, kSource, fits_equal_blocks, gather},
    {"binomial", Collective::scatter, Order::any, kSource, fits_equal_blocks, scatter},
    {"tree", Collective::barrier, Order::any, kSource, fits_equal_blocks, barrier},
};

}  // namespace

namespace family {
std::span<const Algorithm> binomial() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
