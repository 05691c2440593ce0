// SPDX-License-Identifier: Apache-2.0
#include "schedule/whole.h"

#include "schedule/dump.h"

namespace hcomm::schedule {
namespace {

// A length is a number that is equal for two chunks exactly where all ranks know them to be of one
// length: 0 for a token; else of (what decides the block's count, part).
constexpr uint32_t kUnknown = ~0u;

uint32_t length_of(const Shape& shape, uint32_t parts, uint16_t buffer, uint32_t chunk) {
  const uint32_t block = chunk / parts, part = chunk % parts;
  if (!shape.varied) return part + 1;
  uint32_t decides = 0;
  const uint32_t own = shape.rank;
  switch (shape.collective) {
    case Collective::all_gather:
      decides = buffer == kInput ? own : block;
      break;
    case Collective::reduce_scatter:
      decides = buffer == kInput ? block : own;
      break;
    case Collective::all_to_all:  // sender * ranks + receiver
      decides = buffer == kInput ? own * shape.ranks + block : block * shape.ranks + own;
      break;
    case Collective::gather:
    case Collective::scatter: {
      const bool single = (buffer == kInput) == (shape.collective == Collective::gather);
      decides = single ? own : block;
      // The counts are arguments of the root alone; others know their own.
      if (own != shape.root && decides != own) return kUnknown;
      break;
    }
    default:
      break;
  }
  return decides * parts + part + 1;
}

// Blocks that a scratch chunk of any rank may mirror: those of the root's side.
uint32_t mirrored_blocks(Shape shape, uint16_t buffer) {
  shape.rank = shape.root;
  return blocks_of(shape, buffer);
}

}  // namespace

Whole::Whole(std::span<const Schedule> all) : all_(all) {
  if (all.empty()) fault("there is no schedule to check");
  const Schedule& first = all[0];
  if (first.shape.collective >= Collective::point_to_point)
    fault("{} has no meaning of its own to check", name(first.shape.collective));
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    const Shape& shape = of(rank).shape;
    if (shape.ranks != ranks() || shape.rank != rank)
      fault("schedule {} of {} is for rank {} of {}", rank, ranks(), shape.rank, shape.ranks);
    if (plan_hash(of(rank)) != plan_hash(first) || of(rank).parts == 0)
      fault(
          "rank {} has another plan than rank 0: algorithm, order, parts, collective, root and "
          "varied must agree",
          rank);
  }
  if (shape().root >= ranks()) fault("root {} of {} ranks", shape().root, ranks());
  number_steps();
  number_chunks();
  for (uint32_t rank = 0; rank < ranks(); rank++) check_steps(rank);
  reverse_needs();
  match();
}

std::string Whole::text(uint32_t id) const {
  return fmt::format("rank {} step {} ({})", rank_of(id), index_of(id),
                     step_text(of(rank_of(id)), step(id)));
}

void Whole::number_steps() {
  first_step_.assign(1, 0);
  for (const Schedule& schedule : all_) {
    const uint32_t rank = static_cast<uint32_t>(first_step_.size() - 1);
    first_step_.push_back(first_step_.back() + static_cast<uint32_t>(schedule.steps.size()));
    rank_of_.resize(first_step_.back(), rank);
  }
}

void Whole::reverse_needs() {
  const auto for_each_need = [&](auto&& visit) {
    for (uint32_t id = 0; id < steps(); id++) {
      const uint32_t rank = rank_of(id);
      for (const uint32_t need : of(rank).needs_of(step(id))) visit(first_step(rank) + need, id);
    }
  };
  first_dependent_.assign(steps() + 1, 0);
  for_each_need([&](uint32_t need, uint32_t) { first_dependent_[need + 1]++; });
  for (uint32_t id = 0; id < steps(); id++) first_dependent_[id + 1] += first_dependent_[id];
  dependents_.resize(first_dependent_.back());
  std::vector<uint32_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
  for_each_need([&](uint32_t need, uint32_t id) { dependents_[next[need]++] = id; });
}

void Whole::number_chunks() {
  first_chunk_.assign(1, 0);
  for (const Schedule& schedule : all_) {
    for (const uint16_t buffer : {kInput, kOutput})
      first_chunk_.push_back(first_chunk_.back() +
                             blocks_of(schedule.shape, buffer) * schedule.parts);
    first_chunk_.push_back(first_chunk_.back() + static_cast<uint32_t>(schedule.scratch.size()));
  }
  length_.resize(chunks());
  memory_.resize(chunks());
  for (uint32_t rank = 0; rank < ranks(); rank++) measure_rank(rank);
}

void Whole::measure_rank(uint32_t rank) {
  const Schedule& schedule = of(rank);
  const Shape& shape = schedule.shape;
  const uint32_t end = first_chunk_[rank * 3 + 3];
  for (uint32_t id = first_chunk(rank, kInput); id < end; id++) memory_[id] = id;
  for (const uint16_t buffer : {kInput, kOutput})
    for (uint32_t i = 0; i < blocks_of(shape, buffer) * parts(); i++) {
      const uint32_t id = first_chunk(rank, buffer) + i;
      length_[id] = length_of(shape, parts(), buffer, i);
      const Slice alias = buffer == kInput ? in_place_alias(shape, parts(), i) : Slice{};
      if (alias.count == 1) memory_[id] = chunk(rank, alias, 0);
    }
  for (uint32_t i = 0; i < schedule.scratch.size(); i++) {
    const Slice mirrored = schedule.scratch[i];
    if (mirrored.buffer == kNothing) continue;  // a token: length 0
    if (mirrored.buffer > kOutput ||
        mirrored.chunk >= mirrored_blocks(shape, mirrored.buffer) * parts())
      fault("rank {}: scratch {} mirrors chunk {} of buffer {}, which does not exist", rank, i,
            mirrored.chunk, mirrored.buffer);
    const uint32_t length = length_of(shape, parts(), mirrored.buffer, mirrored.chunk);
    if (length == kUnknown)
      fault("rank {}: scratch {} mirrors block {}, whose length only the root knows", rank, i,
            mirrored.chunk / parts());
    length_[first_chunk(rank, kScratch) + i] = length;
  }
}

void Whole::check_steps(uint32_t rank) const {
  const Schedule& schedule = of(rank);
  for (uint32_t i = 0; i < schedule.steps.size(); i++) {
    const Step& step = schedule.steps[i];
    const uint32_t id = first_step(rank) + i;
    if (step.first_need > schedule.needs.size() ||
        step.need_count > schedule.needs.size() - step.first_need)
      fault("rank {} step {}: its needs are out of range", rank, i);
    if (step.first_peer > schedule.peers.size() ||
        step.peer_count > schedule.peers.size() - step.first_peer)
      fault("rank {} step {}: its peers are out of range", rank, i);
    for (const uint32_t need : schedule.needs_of(step))
      if (need >= i) fault("{} needs step {}, which is not earlier", text(id), need);
    check_peers(id);
    switch (step.kind) {
      case StepKind::send:
        check_slice(id, step.a);
        break;
      case StepKind::recv:
        check_slice(id, step.to);
        break;
      case StepKind::copy:
        check_lengths(id, step.to, step.a);
        break;
      case StepKind::reduce:
        check_lengths(id, step.to, step.a);
        check_lengths(id, step.to, step.b);
        break;
      default:
        fault("{}: {} has no meaning yet", text(id), name(step.kind));
    }
    if (step.kind == StepKind::send || step.to.buffer != kInput) continue;
    for (uint32_t j = 0; j < step.to.count; j++)
      if (memory(chunk(rank, step.to, j)) == chunk(rank, step.to, j))
        fault("{} writes the input", text(id));
  }
}

void Whole::check_slice(uint32_t id, Slice slice) const {
  const uint32_t rank = rank_of(id);
  if (slice.buffer > kScratch) fault("{} names no buffer", text(id));
  const uint32_t first = first_chunk(rank, slice.buffer);
  const uint32_t has = first_chunk_[rank * 3 + slice.buffer + 1] - first;
  if (slice.count == 0) fault("{} moves no chunk", text(id));
  if (slice.chunk >= has || slice.count > has - slice.chunk)
    fault("{} leaves its buffer, which has {} chunks", text(id), has);
}

void Whole::check_peers(uint32_t id) const {
  const std::span<const uint32_t> peers = of(rank_of(id)).peers_of(step(id));
  const StepKind kind = step(id).kind;
  if (kind != StepKind::send && peers.size() != (kind == StepKind::recv ? 1 : 0))
    fault("{} has {} peers", text(id), peers.size());
  if (kind == StepKind::send && peers.empty()) fault("{} has no peer", text(id));
  for (size_t i = 0; i < peers.size(); i++) {
    if (peers[i] >= ranks() || peers[i] == rank_of(id))
      fault("{}: {} is no peer of {} ranks", text(id), peers[i], ranks());
    for (size_t j = 0; j < i; j++)
      if (peers[j] == peers[i]) fault("{} names peer {} twice", text(id), peers[i]);
  }
}

// A local step keeps lengths, chunk by chunk, so whatever a chunk holds has the chunk's length.
void Whole::check_lengths(uint32_t id, Slice to, Slice from) const {
  check_slice(id, to);
  check_slice(id, from);
  if (to.count != from.count) fault("{}: {} chunks from {}", text(id), to.count, from.count);
  for (uint32_t i = 0; i < to.count; i++)
    if (length_[chunk(rank_of(id), to, i)] != length_[chunk(rank_of(id), from, i)])
      fault("{}: chunk {} of its slices differs in length", text(id), i);
}

void Whole::match() {
  std::vector<uint32_t> receives(channels());
  first_message_.assign(channels() + 1, 0);
  first_link_.assign(1, 0);
  for (uint32_t id = 0; id < steps(); id++) {
    const uint32_t rank = rank_of(id);
    const std::span<const uint32_t> peers = of(rank).peers_of(step(id));
    const bool sends = step(id).kind == StepKind::send;
    for (const uint32_t peer : peers)
      sends ? first_message_[channel(rank, peer) + 1]++ : receives[channel(peer, rank)]++;
    first_link_.push_back(first_link_.back() + static_cast<uint32_t>(peers.size()));
  }
  for (uint32_t c = 0; c < channels(); c++) {
    const uint32_t sends = first_message_[c + 1];
    if (sends != receives[c])
      fault("rank {} sends {} messages to rank {}, which receives {} from it", c / ranks(), sends,
            c % ranks(), receives[c]);
    first_message_[c + 1] += first_message_[c];
  }
  messages_.resize(first_message_.back());
  links_.resize(first_link_.back());
  std::vector<uint32_t> next_send(first_message_.begin(), first_message_.end() - 1);
  std::vector<uint32_t> next_recv = next_send;
  for (uint32_t id = 0; id < steps(); id++) {
    const uint32_t rank = rank_of(id);
    const bool sends = step(id).kind == StepKind::send;
    uint32_t link = first_link_[id];
    for (const uint32_t peer : of(rank).peers_of(step(id))) {
      const uint32_t m =
          sends ? next_send[channel(rank, peer)]++ : next_recv[channel(peer, rank)]++;
      (sends ? messages_[m].send : messages_[m].recv) = id;
      links_[link++] = m;
    }
  }
  for (const Message& message : messages_) meet(message);
}

void Whole::meet(const Message& message) const {
  const Slice from = step(message.send).a, to = step(message.recv).to;
  const uint32_t sender = rank_of(message.send), receiver = rank_of(message.recv);
  if (from.count != to.count) fault("{} meets {}", text(message.send), text(message.recv));
  for (uint32_t i = 0; i < to.count; i++)
    if (length_[chunk(sender, from, i)] != length_[chunk(receiver, to, i)])
      fault("{} meets {}: chunk {} differs in length", text(message.send), text(message.recv), i);
}

}  // namespace hcomm::schedule
