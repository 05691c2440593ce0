// SPDX-License-Identifier: Apache-2.0
// Proof 4. Runs one tile over symbols: an input chunk is a leaf, a reduction a node of two
// operands, equal trees have one number. Since there is no race, every legal order leaves the same
// values.
#include <unordered_map>

#include "schedule/check_parts.h"

namespace hcomm::schedule {
namespace {

using Value = uint32_t;  // 0: nothing; 1 + input chunk: a leaf; else a node
constexpr Value kNothingYet = 0;

class Meaning {
 public:
  explicit Meaning(const Whole& whole);
  void run(std::span<const uint32_t> order);
  void check_outputs();

 private:
  struct Node {
    Value left, right;
    uint32_t leaves;  // counted with repetition, saturating
  };
  struct Leaf {
    uint32_t rank, block, part;
  };

  void take(uint32_t step);
  Value read(uint32_t step, Slice slice, uint32_t i) const;
  Value reduced(Value left, Value right);
  bool is_leaf(Value value) const { return value <= leaves_.size(); }
  uint32_t leaf_count(Value value) const {
    return is_leaf(value) ? 1 : nodes_[value - leaves_.size() - 1].leaves;
  }
  const Node& node(Value value) const { return nodes_[value - leaves_.size() - 1]; }
  Value leaf(uint32_t rank, uint32_t block, uint32_t part) const {
    return first_leaf_[rank] + block * whole_.parts() + part;
  }
  std::string text(Value value, int depth = 0) const;

  void check_output(uint32_t rank, uint32_t block, uint32_t part);
  Value moved(uint32_t rank, uint32_t block, uint32_t part) const;
  void check_tree(Value value, uint32_t block, uint32_t part);
  void check_left_fold(Value value, uint32_t block, uint32_t part) const;

  const Whole& whole_;
  std::vector<Value> held_;  // by memory
  std::vector<Leaf> leaves_;
  std::vector<Value> first_leaf_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, Value> known_;
  std::vector<Value> carried_;  // by messages: what the send read when it started
  std::vector<uint32_t> first_carried_;
  std::vector<uint32_t> seen_in_;  // by rank: the tree that its contribution was last seen in
  uint32_t trees_ = 0;
  std::vector<Value> proven_, agreed_;  // by block and part
};

Meaning::Meaning(const Whole& whole) : whole_(whole), held_(whole.chunks()) {
  const uint32_t parts = whole.parts();
  for (uint32_t rank = 0; rank < whole.ranks(); rank++) {
    first_leaf_.push_back(static_cast<Value>(leaves_.size() + 1));
    const uint32_t blocks = blocks_of(whole.of(rank).shape, kInput);
    for (uint32_t chunk = 0; chunk < blocks * parts; chunk++) {
      leaves_.push_back({rank, chunk / parts, chunk % parts});
      held_[whole.memory(whole.first_chunk(rank, kInput) + chunk)] =
          static_cast<Value>(leaves_.size());
    }
  }
  first_carried_.resize(whole.steps());
  seen_in_.resize(whole.ranks());
  proven_.resize(whole.ranks() * parts);
  agreed_.resize(parts);
}

void Meaning::run(std::span<const uint32_t> order) {
  for (const uint32_t id : order) take(id);
}

void Meaning::take(uint32_t id) {
  const Step& step = whole_.step(id);
  const uint32_t rank = whole_.rank_of(id);
  const uint32_t count = step.kind == StepKind::send ? step.a.count : step.to.count;
  uint32_t first = 0;
  if (step.kind == StepKind::send)
    first_carried_[id] = static_cast<uint32_t>(carried_.size());
  else if (step.kind == StepKind::recv)
    first = first_carried_[whole_.message(whole_.messages_of(id)[0]).send];
  for (uint32_t i = 0; i < count; i++) {
    Value value = kNothingYet;
    switch (step.kind) {
      case StepKind::recv:
        value = carried_[first + i];
        break;
      case StepKind::reduce:
        value = reduced(read(id, step.a, i), read(id, step.b, i));
        break;
      default:
        value = read(id, step.a, i);
    }
    if (step.kind == StepKind::send)
      carried_.push_back(value);
    else
      held_[whole_.memory(whole_.chunk(rank, step.to, i))] = value;
    if (step.kind != StepKind::send || whole_.of(rank).order == Order::any) continue;
    if (!is_leaf(value) && leaf_count(value) != whole_.ranks())
      fault("{} sends the partial sum {}; in rank order a sum is made in one place",
            whole_.text(id), text(value));
  }
}

Value Meaning::read(uint32_t id, Slice slice, uint32_t i) const {
  const uint32_t chunk = whole_.chunk(whole_.rank_of(id), slice, i);
  const Value value = held_[whole_.memory(chunk)];
  if (value == kNothingYet && !whole_.empty(chunk))
    fault("{} reads at chunk {} of its slice what was never written", whole_.text(id), i);
  return value;
}

Value Meaning::reduced(Value left, Value right) {
  if (left == kNothingYet || right == kNothingYet) return kNothingYet;  // tokens
  const auto next = static_cast<Value>(leaves_.size() + nodes_.size() + 1);
  const auto [entry, fresh] = known_.try_emplace(uint64_t{left} << 32 | right, next);
  if (fresh) {
    const uint64_t leaves = uint64_t{leaf_count(left)} + leaf_count(right);
    nodes_.push_back({left, right, leaves > ~0u ? ~0u : static_cast<uint32_t>(leaves)});
  }
  return entry->second;
}

std::string Meaning::text(Value value, int depth) const {
  constexpr int kDeepest = 6;
  if (value == kNothingYet) return "nothing";
  if (is_leaf(value)) {
    const Leaf& leaf = leaves_[value - 1];
    return fmt::format("{}[{}.{}]", leaf.rank, leaf.block, leaf.part);
  }
  if (depth == kDeepest) return "...";
  return fmt::format("({}+{})", text(node(value).left, depth + 1),
                     text(node(value).right, depth + 1));
}

void Meaning::check_outputs() {
  for (uint32_t rank = 0; rank < whole_.ranks(); rank++)
    for (uint32_t block = 0; block < blocks_of(whole_.of(rank).shape, kOutput); block++)
      for (uint32_t part = 0; part < whole_.parts(); part++) check_output(rank, block, part);
}

void Meaning::check_output(uint32_t rank, uint32_t block, uint32_t part) {
  const uint32_t parts = whole_.parts();
  const Value value = held_[whole_.first_chunk(rank, kOutput) + block * parts + part];
  if (value == kNothingYet)
    fault("rank {} never writes output block {} part {}", rank, block, part);
  if (!reduces(whole_.shape().collective)) {
    const Value wanted = moved(rank, block, part);
    if (value == wanted) return;
    fault("rank {} output block {} part {} holds {}, not {}", rank, block, part, text(value),
          text(wanted));
  }
  const bool scattered = whole_.shape().collective == Collective::reduce_scatter;
  const uint32_t of_block = scattered ? rank : 0;
  check_tree(value, of_block, part);
  if (scattered) return;
  if (agreed_[part] == kNothingYet) agreed_[part] = value;
  if (agreed_[part] != value)
    fault("rank {} part {} holds {}, an earlier rank {}: not the same tree", rank, part,
          text(value), text(agreed_[part]));
}

// What a collective that only moves data has to bring.
Value Meaning::moved(uint32_t rank, uint32_t block, uint32_t part) const {
  const uint32_t root = whole_.shape().root;
  switch (whole_.shape().collective) {
    case Collective::broadcast:
      return leaf(root, 0, part);
    case Collective::all_to_all:
      return leaf(block, rank, part);
    case Collective::scatter:
      return leaf(root, rank, part);
    default:
      return leaf(block, 0, part);  // all_gather, gather
  }
}

// Every rank's contribution to (block, part) exactly once, nothing else.
void Meaning::check_tree(Value value, uint32_t block, uint32_t part) {
  Value& proven = proven_[block * whole_.parts() + part];
  if (proven == value) return;
  trees_++;
  uint32_t found = 0;
  std::vector<Value> open{value};
  while (!open.empty()) {
    const Value next = open.back();
    open.pop_back();
    if (!is_leaf(next)) {
      open.push_back(node(next).right);
      open.push_back(node(next).left);
      continue;
    }
    const Leaf& leaf = leaves_[next - 1];
    if (leaf.block != block || leaf.part != part)
      fault("the result for block {} part {} holds {}: {}", block, part, text(next), text(value));
    if (seen_in_[leaf.rank] == trees_)
      fault("the result for block {} part {} counts rank {} twice: {}", block, part, leaf.rank,
            text(value));
    seen_in_[leaf.rank] = trees_;
    found++;
  }
  if (found < whole_.ranks()) {
    uint32_t missing = 0;
    while (seen_in_[missing] == trees_) missing++;
    fault("the result for block {} part {} lacks rank {}: {}", block, part, missing, text(value));
  }
  if (whole_.of(0).order == Order::rank) check_left_fold(value, block, part);
  proven = value;
}

void Meaning::check_left_fold(Value value, uint32_t block, uint32_t part) const {
  Value rest = value;
  for (uint32_t rank = whole_.ranks() - 1; rank > 0; rank--) {
    if (is_leaf(rest) || node(rest).right != leaf(rank, block, part))
      fault("the result for block {} part {} is no left fold in rank order: {}", block, part,
            text(value));
    rest = node(rest).left;
  }
}

}  // namespace

void check_meaning(const Whole& whole, std::span<const uint32_t> order) {
  Meaning meaning(whole);
  meaning.run(order);
  meaning.check_outputs();
}

// Who is known to have begun: by a step, through its needs and the message that it received.
void check_barrier(const Whole& whole, std::span<const uint32_t> order) {
  const uint32_t ranks = whole.ranks();
  const size_t words = (ranks + 63) / 64;
  std::vector<uint64_t> known(whole.steps() * words), left(ranks * words);
  const auto join = [&](uint64_t* to, const uint64_t* from) {
    for (size_t w = 0; w < words; w++) to[w] |= from[w];
  };
  for (uint32_t rank = 0; rank < ranks; rank++)
    left[rank * words + rank / 64] |= uint64_t{1} << rank % 64;
  for (const uint32_t id : order) {
    const uint32_t rank = whole.rank_of(id);
    uint64_t* row = &known[id * words];
    row[rank / 64] |= uint64_t{1} << rank % 64;
    for (const uint32_t need : whole.of(rank).needs_of(whole.step(id)))
      join(row, &known[(whole.first_step(rank) + need) * words]);
    if (whole.step(id).kind == StepKind::recv)
      join(row, &known[whole.message(whole.messages_of(id)[0]).send * words]);
    join(&left[rank * words], row);
  }
  for (uint32_t rank = 0; rank < ranks; rank++)
    for (uint32_t other = 0; other < ranks; other++)
      if (!(left[rank * words + other / 64] >> other % 64 & 1))
        fault("rank {} may leave the barrier before rank {} has come", rank, other);
}

}  // namespace hcomm::schedule
