// SPDX-License-Identifier: Apache-2.0
#include "schedule/builder.h"

#include <algorithm>

#include "base/error.h"

namespace hcomm::schedule {

Builder::Builder(const Shape& shape) {
  schedule_.shape = shape;
}

void Builder::parts(uint32_t count) {
  HCOMM_CHECK(schedule_.steps.empty() && schedule_.scratch.empty() && count > 0);
  schedule_.parts = count;
}

Slice Builder::input(uint32_t block) const {
  return input_part(block, 0, schedule_.parts);
}
Slice Builder::output(uint32_t block) const {
  return output_part(block, 0, schedule_.parts);
}

Slice Builder::input_part(uint32_t block, uint32_t part, uint32_t count) const {
  HCOMM_CHECK(block < blocks_of(shape(), kInput), "block {} rank {}", block, rank());
  return {kInput, block * schedule_.parts + part, count};
}

Slice Builder::output_part(uint32_t block, uint32_t part, uint32_t count) const {
  HCOMM_CHECK(block < blocks_of(shape(), kOutput), "block {} rank {}", block, rank());
  return {kOutput, block * schedule_.parts + part, count};
}

Slice Builder::scratch(Slice like) {
  const auto first = static_cast<uint32_t>(schedule_.scratch.size());
  for (uint32_t i = 0; i < like.count; i++) {
    const Slice mirrored = like.buffer == kScratch ? schedule_.scratch[like.chunk + i]
                                                   : Slice{like.buffer, like.chunk + i, 1};
    schedule_.scratch.push_back(mirrored);
  }
  return {kScratch, first, like.count};
}

Slice Builder::scratch_block(uint32_t block) {
  const auto first = static_cast<uint32_t>(schedule_.scratch.size());
  const uint16_t side = shape().collective == Collective::scatter ? kInput : kOutput;
  for (uint32_t part = 0; part < schedule_.parts; part++)
    schedule_.scratch.push_back({side, block * schedule_.parts + part, 1});
  return {kScratch, first, schedule_.parts};
}

Slice Builder::token() {
  schedule_.scratch.push_back({kNothing, 0, 0});
  return {kScratch, static_cast<uint32_t>(schedule_.scratch.size() - 1), 1};
}

void Builder::send(uint32_t peer, Slice what) {
  send(std::span(&peer, 1), what);
}

void Builder::send(std::span<const uint32_t> peers, Slice what) {
  if (peers.empty()) return;
  read(what);
  add({.kind = StepKind::send, .a = what}, peers);
}

void Builder::recv(uint32_t peer, Slice to) {
  write(to);
  add({.kind = StepKind::recv, .to = to}, std::span(&peer, 1));
}

void Builder::copy(Slice to, Slice from) {
  HCOMM_CHECK(to.count == from.count, "{} {}", to.count, from.count);
  bool same = from.buffer == kInput && shape().in_place;
  for (uint32_t i = 0; same && i < to.count; i++)
    same = in_place_alias(shape(), schedule_.parts, from.chunk + i) ==
           Slice{to.buffer, to.chunk + i, 1};
  if (same) return;
  read(from);
  write(to);
  add({.kind = StepKind::copy, .a = from, .to = to}, {});
}

void Builder::reduce(Slice to, Slice a, Slice b) {
  HCOMM_CHECK(to.count == a.count && to.count == b.count, "{} {} {}", to.count, a.count, b.count);
  read(a);
  read(b);
  write(to);
  add({.kind = StepKind::reduce, .a = a, .b = b, .to = to}, {});
}

Schedule Builder::finish(std::string_view algorithm, Order order) {
  schedule_.algorithm = algorithm;
  schedule_.order = order;
  return std::move(schedule_);
}

// Chunks that are one memory in place are tracked as one: the output's.
Builder::Chunk& Builder::track(uint16_t buffer, uint32_t chunk) {
  if (buffer == kInput) {
    const Slice alias = in_place_alias(shape(), schedule_.parts, chunk);
    if (alias.count == 1) {
      buffer = alias.buffer;
      chunk = alias.chunk;
    }
  }
  auto& chunks = tracked_[buffer];
  if (chunks.size() <= chunk) chunks.resize(chunk + 1);
  return chunks[chunk];
}

void Builder::read(Slice slice) {
  const auto step = static_cast<uint32_t>(schedule_.steps.size());
  for (uint32_t i = 0; i < slice.count; i++) {
    Chunk& chunk = track(slice.buffer, slice.chunk + i);
    if (chunk.writer >= 0) pending_needs_.push_back(static_cast<uint32_t>(chunk.writer));
    if (chunk.readers.empty() || chunk.readers.back() != step) chunk.readers.push_back(step);
  }
}

void Builder::write(Slice slice) {
  const auto step = static_cast<uint32_t>(schedule_.steps.size());
  for (uint32_t i = 0; i < slice.count; i++) {
    Chunk& chunk = track(slice.buffer, slice.chunk + i);
    if (chunk.writer >= 0) pending_needs_.push_back(static_cast<uint32_t>(chunk.writer));
    for (const uint32_t reader : chunk.readers)
      if (reader != step) pending_needs_.push_back(reader);
    chunk.readers.clear();
    chunk.writer = static_cast<int32_t>(step);
  }
}

void Builder::add(Step step, std::span<const uint32_t> peers) {
  for (const uint32_t peer : peers)
    HCOMM_CHECK(peer < ranks() && peer != rank(), "peer {} of rank {}", peer, rank());
  std::sort(pending_needs_.begin(), pending_needs_.end());
  pending_needs_.erase(std::unique(pending_needs_.begin(), pending_needs_.end()),
                       pending_needs_.end());
  step.first_peer = static_cast<uint32_t>(schedule_.peers.size());
  step.peer_count = static_cast<uint32_t>(peers.size());
  step.first_need = static_cast<uint32_t>(schedule_.needs.size());
  step.need_count = static_cast<uint32_t>(pending_needs_.size());
  schedule_.peers.insert(schedule_.peers.end(), peers.begin(), peers.end());
  schedule_.needs.insert(schedule_.needs.end(), pending_needs_.begin(), pending_needs_.end());
  schedule_.steps.push_back(step);
  pending_needs_.clear();
}

}  // namespace hcomm::schedule
