// SPDX-License-Identifier: Apache-2.0
// Double binary tree: below the root two trees over all other ranks, each for half of the block; a
// rank that is inner in one is a leaf in the other, so all links are used, at a depth of
// log2(ranks). For medium and large messages.
#include "algorithm/shapes.h"

namespace hcomm::algorithm {

namespace {

constexpr uint32_t kTrees = 2;
constexpr uint32_t kNobody = ~0u;

struct Node {
  uint32_t parent = kNobody, left = kNobody, right = kNobody;
};

// The in-order binary tree over positions 1 .. size: odd ones are leaves; what is left of a node is
// less, what is right of it greater. Position 0 is above the top.
Node in_order(uint32_t size, uint32_t position) {
  if (position == 0) return {.right = std::bit_floor(size)};
  const uint32_t low = position & (~position + 1);  // the lowest set bit tells the height
  const uint32_t above = (position ^ low) | (low * 2);
  Node node{.parent = above <= size ? above : position ^ low};
  if (low > 1) node.left = position - low / 2;
  for (uint32_t step = low / 2; step > 0 && node.right == kNobody; step /= 2)
    if (position + step <= size) node.right = position + step;
  return node;
}

// This rank's neighbours in a tree. The second tree is the first one moved by a position, which
// swaps odd and even.
Node neighbours(const Builder& b, uint32_t tree, uint32_t root) {
  const Circle circle{b.ranks(), root};
  const uint32_t size = b.ranks() - 1, position = circle.position_of(b.rank());
  const bool moved = tree == 1 && position > 0;
  const Node node = in_order(size, moved ? position % size + 1 : position);
  const auto rank_of = [&](uint32_t at) {
    if (at == kNobody) return kNobody;
    if (tree == 1 && at > 0) at = at == 1 ? size : at - 1;
    return circle.rank_at(at);
  };
  return {rank_of(node.parent), rank_of(node.left), rank_of(node.right)};
}

// Reduces a tree's part towards the root, which gets it in its output.
void reduce_up(Builder& b, uint32_t tree, uint32_t root) {
  const Node node = neighbours(b, tree, root);
  const Slice own = b.input_part(0, tree);
  std::vector<Slice> terms;
  if (node.left != kNobody) terms.push_back(recv_scratch(b, node.left, own));
  terms.push_back(own);
  if (node.right != kNobody) terms.push_back(recv_scratch(b, node.right, own));
  Slice sum = terms[0];
  if (terms.size() > 1) {
    sum = node.parent == kNobody ? b.output_part(0, tree) : b.scratch(own);
    fold(b, sum, terms);
  }
  if (node.parent != kNobody) b.send(node.parent, sum);
}

// The root's `what`, a tree's part, to everybody's output.
void broadcast_down(Builder& b, uint32_t tree, uint32_t root, Slice what) {
  const Node node = neighbours(b, tree, root);
  if (node.parent != kNobody) b.recv(node.parent, what);
  std::vector<uint32_t> children{node.left, node.right};
  std::erase(children, kNobody);
  b.send(children, what);
}

void reduce(Builder& b) {
  b.parts(kTrees);
  for (uint32_t tree = 0; tree < kTrees; tree++) reduce_up(b, tree, b.root());
}

void broadcast(Builder& b) {
  b.parts(kTrees);
  const bool root = b.rank() == b.root();
  for (uint32_t tree = 0; tree < kTrees; tree++)
    broadcast_down(b, tree, b.root(), root ? b.input_part(0, tree) : b.output_part(0, tree));
  if (root) b.copy(b.output(), b.input());
}

void all_reduce(Builder& b) {
  b.parts(kTrees);
  for (uint32_t tree = 0; tree < kTrees; tree++) reduce_up(b, tree, 0);
  for (uint32_t tree = 0; tree < kTrees; tree++) broadcast_down(b, tree, 0, b.output_part(0, tree));
}

constexpr std::string_view kSource = "Sanders, Speck, Traff 2009";
constexpr Algorithm kAlgorithms[] = {
    {"double_tree", Collective::all_reduce, Order::any, kSource, fits_equal_blocks, all_reduce},
    {"double_tree", Collective::reduce, Order::any, kSource, fits_equal_blocks, reduce},
    {"double_tree", Collective::broadcast, Order::any, kSource, fits_equal_blocks, broadcast},
};

}  // namespace

namespace family {
std::span<const Algorithm> double_tree() {
  return kAlgorithms;
}
}  // namespace family

}  // namespace hcomm::algorithm
