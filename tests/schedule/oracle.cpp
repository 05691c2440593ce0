// SPDX-License-Identifier: Apache-2.0
#include "schedule/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace hcomm::schedule {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t hash = a * 0x9e3779b97f4a7c15u + (b ^ (b >> 29)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 31)) * 0x94d049bb133111ebu;
  return (hash ^ (hash >> 30)) & ~uint64_t{1};  // even: a value, not a mark
}

uint64_t mark(uint32_t rank, uint32_t step) {
  return (uint64_t{rank} << 32 | step) * 2 + 1;
}

}  // namespace

Oracle::Oracle(std::span<const Schedule> all)
    : all_(all), ranks_(static_cast<uint32_t>(all.size())), parts_(all[0].parts) {}

std::string Oracle::judge(uint64_t seed, int runs) {
  if (!fits()) return "does not fit together";
  random_.seed(seed);
  for (int i = 0; i < runs && wrong_.empty(); i++) {
    buffered_ = i % 2 == 1;
    reset();
    run();
  }
  return std::exchange(wrong_, {});
}

bool Oracle::in_range(const Schedule& schedule, Slice slice) const {
  if (slice.buffer > kScratch || slice.count == 0) return false;
  const size_t has = slice.buffer == kScratch
                         ? schedule.scratch.size()
                         : size_t{blocks_of(schedule.shape, slice.buffer)} * schedule.parts;
  return size_t{slice.chunk} + slice.count <= has;
}

bool Oracle::fits(const Schedule& schedule, const Step& step) const {
  for (const uint32_t peer : schedule.peers_of(step)) {
    if (peer >= ranks_ || peer == schedule.shape.rank) return false;
    const auto peers = schedule.peers_of(step);
    if (std::count(peers.begin(), peers.end(), peer) > 1) return false;
  }
  const auto index = static_cast<uint32_t>(&step - schedule.steps.data());
  for (const uint32_t need : schedule.needs_of(step))
    if (need >= index) return false;
  const bool reads = step.kind != StepKind::recv, writes = step.kind != StepKind::send;
  if (reads && !in_range(schedule, step.a)) return false;
  if (writes && !in_range(schedule, step.to)) return false;
  if (reads && writes && step.a.count != step.to.count) return false;
  if (step.kind != StepKind::reduce) return true;
  return in_range(schedule, step.b) && step.b.count == step.to.count;
}

bool Oracle::fits() const {
  for (const Schedule& schedule : all_)
    for (const Step& step : schedule.steps)
      if (!fits(schedule, step)) return false;
  return true;
}

void Oracle::reset() {
  events_ = {};
  now_ = 0;
  memory_.assign(ranks_, {});
  states_.assign(ranks_, {});
  channels_.assign(size_t{ranks_} * ranks_, {});
  entered_.assign(ranks_, false);
  left_.assign(ranks_, 0);
  slowness_.assign(ranks_, 1);
  lag_chance_ = random_() % 3 == 0 ? 0.2 : 0;
  for (uint32_t rank = 0; rank < ranks_; rank++) {
    const Schedule& schedule = all_[rank];
    if (random_() % 3 == 0) slowness_[rank] = 300;
    for (const uint16_t buffer : {kInput, kOutput})
      memory_[rank][buffer].resize(blocks_of(schedule.shape, buffer) * parts_);
    memory_[rank][kScratch].resize(schedule.scratch.size());
    for (uint32_t i = 0; i < memory_[rank][kInput].size(); i++)
      cell(rank, {kInput, i, 1}, 0) = leaf(rank, i / parts_, i % parts_);
    left_[rank] = schedule.steps.size();
    states_[rank].resize(schedule.steps.size());
    for (uint32_t i = 0; i < schedule.steps.size(); i++) {
      states_[rank][i].needs = step(rank, i).need_count;
      for (const uint32_t peer : schedule.peers_of(step(rank, i)))
        step(rank, i).kind == StepKind::send ? channel(rank, peer).sends.push_back(i)
                                             : channel(peer, rank).receives.push_back(i);
    }
  }
}

void Oracle::run() {
  for (const Channel& channel : channels_)
    if (channel.sends.size() != channel.receives.size()) return wrong("unmatched messages");
  for (uint32_t rank = 0; rank < ranks_; rank++) plan(What::enter, rank, 0);
  while (!events_.empty() && wrong_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    happen(event);
  }
  if (!wrong_.empty()) return;
  for (uint32_t rank = 0; rank < ranks_; rank++)
    if (left_[rank] > 0) return wrong(fmt::format("rank {} hangs", rank));
  check_results();
}

void Oracle::plan(What what, uint32_t rank, uint32_t step) {
  std::uniform_real_distribution<double> unit(0, 1);
  double delay = unit(random_) * slowness_[rank];
  if (unit(random_) < lag_chance_) delay += 1000 * unit(random_);
  events_.push({now_ + delay, what, rank, step});
}

void Oracle::happen(const Event& event) {
  if (event.what == What::start) return start(event.rank, event.step);
  if (event.what == What::end) return end(event.rank, event.step);
  entered_[event.rank] = true;
  for (uint32_t i = 0; i < states_[event.rank].size(); i++) consider(event.rank, i);
  if (states_[event.rank].empty() && all_[0].shape.collective == Collective::barrier &&
      std::find(entered_.begin(), entered_.end(), false) != entered_.end())
    wrong("left the barrier early");
}

// Plans the start of a step that may start now.
void Oracle::consider(uint32_t rank, uint32_t index) {
  State& state = states_[rank][index];
  if (!entered_[rank] || state.due || state.needs > 0) return;
  const bool sends = step(rank, index).kind == StepKind::send;
  for (const uint32_t peer : all_[rank].peers_of(step(rank, index))) {
    const Channel& along = sends ? channel(rank, peer) : channel(peer, rank);
    const auto& order = sends ? along.sends : along.receives;
    if (order[sends ? along.sent : along.posted] != index) return;
  }
  state.due = true;
  plan(What::start, rank, index);
}

void Oracle::start(uint32_t rank, uint32_t index) {
  const Step& what = step(rank, index);
  State& state = states_[rank][index];
  state.started = true;
  state.read = sources(rank, index);
  for (uint32_t i = 0; i < what.to.count && what.kind != StepKind::send; i++) {
    Value& value = cell(rank, what.to, i);
    const bool in_place = what.kind == StepKind::reduce &&
                          (&value == &cell(rank, what.a, i) || &value == &cell(rank, what.b, i));
    const bool token = mirrored(rank, what.to, i).count == 0;
    if (!in_place && !token) value.tree = mark(rank, index);
  }
  const std::span<const uint32_t> peers = all_[rank].peers_of(what);
  state.open = static_cast<uint32_t>(peers.size());
  for (const uint32_t peer : peers) {
    const bool sends = what.kind == StepKind::send;
    Channel& along = sends ? channel(rank, peer) : channel(peer, rank);
    const uint32_t number = sends ? along.sent++ : along.posted++;
    if (number < std::min(along.sent, along.posted))
      plan(What::end, sends ? peer : rank, along.receives[number]);
    const auto& order = sends ? along.sends : along.receives;
    if (number + 1 < order.size()) consider(rank, order[number + 1]);
  }
  if (peers.empty() || (what.kind == StepKind::send && buffered_)) plan(What::end, rank, index);
}

std::vector<Oracle::Value> Oracle::sources(uint32_t rank, uint32_t index) const {
  const Step& what = step(rank, index);
  std::vector<Value> values;
  if (what.kind == StepKind::recv) return values;
  for (uint32_t i = 0; i < what.a.count; i++) values.push_back(cell(rank, what.a, i));
  if (what.kind == StepKind::reduce)
    for (uint32_t i = 0; i < what.b.count; i++) values.push_back(cell(rank, what.b, i));
  return values;
}

void Oracle::end(uint32_t rank, uint32_t index) {
  const Step& what = step(rank, index);
  State& state = states_[rank][index];
  if (what.kind == StepKind::recv) return end_recv(rank, index);
  if (sources(rank, index) != state.read) return wrong("a source changed while it was read");
  const bool partial = all_[0].order == Order::rank && what.kind == StepKind::send;
  for (uint32_t i = 0; i < state.read.size(); i++) {
    const Value& value = state.read[i];
    const bool of_b = i >= what.a.count;
    const bool token =
        mirrored(rank, of_b ? what.b : what.a, of_b ? i - what.a.count : i).count == 0;
    if (!token && (value.tree == 0 || value.tree % 2 == 1)) return wrong("read what is not there");
    const auto leaves = std::count_if(value.counts.begin(), value.counts.end(),
                                      [](uint8_t count) { return count > 0; });
    if (partial && !token && leaves > 1 && !complete(value)) return wrong("a partial sum travels");
  }
  if (what.kind == StepKind::copy) write(rank, index, state.read);
  if (what.kind == StepKind::reduce) {
    std::vector<Value> values;
    for (uint32_t i = 0; i < what.to.count; i++)
      values.push_back(joined(state.read[i], state.read[i + what.a.count]));
    write(rank, index, values);
  }
  finish(rank, index);
}

void Oracle::end_recv(uint32_t rank, uint32_t index) {
  const uint32_t peer = all_[rank].peers_of(step(rank, index))[0];
  const Channel& along = channel(peer, rank);
  const auto number =
      std::find(along.receives.begin(), along.receives.end(), index) - along.receives.begin();
  const uint32_t sender = along.sends[static_cast<size_t>(number)];
  State& state = states_[peer][sender];
  if (!buffered_ && sources(peer, sender) != state.read)
    return wrong("a source changed while its peer read it");
  const Slice from = step(peer, sender).a, to = step(rank, index).to;
  if (from.count != to.count) return wrong("a message of another length");
  for (uint32_t i = 0; i < to.count; i++)
    if (mirrored(peer, from, i).count != mirrored(rank, to, i).count)
      return wrong("a token for data, or data for a token");
  write(rank, index, state.read);
  finish(rank, index);
  if (!buffered_ && --state.open == 0) plan(What::end, peer, sender);
}

void Oracle::write(uint32_t rank, uint32_t index, const std::vector<Value>& values) {
  const Step& what = step(rank, index);
  for (uint32_t i = 0; i < what.to.count; i++) {
    const Slice like = mirrored(rank, what.to, i);
    if (like.count == 0) continue;
    Value& value = cell(rank, what.to, i);
    if (what.to.buffer == kInput &&
        in_place_alias(all_[rank].shape, parts_, what.to.chunk + i).count == 0)
      return wrong("the input is written");
    const bool in_place = what.kind == StepKind::reduce &&
                          (&value == &cell(rank, what.a, i) || &value == &cell(rank, what.b, i));
    if (!in_place && value.tree != mark(rank, index)) return wrong("two write one chunk");
    if (values[i].tree != 0 && values[i].part != like.chunk % parts_)
      return wrong("a part of another length");
    value = values[i];
  }
}

void Oracle::finish(uint32_t rank, uint32_t index) {
  states_[rank][index].done = true;
  for (uint32_t i = index + 1; i < states_[rank].size(); i++)
    for (const uint32_t need : all_[rank].needs_of(step(rank, i)))
      if (need == index) {
        states_[rank][i].needs--;
        consider(rank, i);
      }
  if (--left_[rank] > 0 || all_[0].shape.collective != Collective::barrier) return;
  if (std::find(entered_.begin(), entered_.end(), false) != entered_.end())
    wrong("left the barrier early");
}

Oracle::Value& Oracle::cell(uint32_t rank, Slice slice, uint32_t i) {
  return const_cast<Value&>(std::as_const(*this).cell(rank, slice, i));
}

const Oracle::Value& Oracle::cell(uint32_t rank, Slice slice, uint32_t i) const {
  uint32_t chunk = slice.chunk + i;
  uint16_t buffer = slice.buffer;
  if (buffer == kInput) {
    const Slice alias = in_place_alias(all_[rank].shape, parts_, chunk);
    if (alias.count == 1) {
      buffer = alias.buffer;
      chunk = alias.chunk;
    }
  }
  return memory_[rank][buffer][chunk];
}

Slice Oracle::mirrored(uint32_t rank, Slice slice, uint32_t i) const {
  if (slice.buffer == kScratch) return all_[rank].scratch[slice.chunk + i];
  return {slice.buffer, slice.chunk + i, 1};
}

bool Oracle::complete(const Value& value) const {
  for (uint32_t rank = 0; rank < ranks_; rank++)
    if (value.counts[rank] != 1) return false;
  return true;
}

Oracle::Value Oracle::joined(const Value& a, const Value& b) {
  Value value = a;
  value.tree = mix(a.tree, b.tree);
  if (a.block != b.block || a.part != b.part) value.block = ~0u;  // never what is wanted
  for (uint32_t rank = 0; rank < kRanks; rank++)
    value.counts[rank] = static_cast<uint8_t>(std::min(255, a.counts[rank] + b.counts[rank]));
  return value;
}

Oracle::Value Oracle::leaf(uint32_t rank, uint32_t block, uint32_t part) const {
  Value value{.tree = mix(rank + 1, uint64_t{block} << 32 | part), .block = block, .part = part};
  value.counts[rank] = 1;
  return value;
}

void Oracle::check_results() {
  for (uint32_t rank = 0; rank < ranks_; rank++)
    for (uint32_t block = 0; block < blocks_of(all_[rank].shape, kOutput); block++)
      for (uint32_t part = 0; part < parts_; part++) check_result(rank, block, part);
}

void Oracle::check_result(uint32_t rank, uint32_t block, uint32_t part) {
  const Shape& shape = all_[rank].shape;
  const Value& value = memory_[rank][kOutput][block * parts_ + part];
  switch (shape.collective) {
    case Collective::broadcast:
      if (value != leaf(shape.root, 0, part)) wrong("not the root's");
      return;
    case Collective::all_gather:
    case Collective::gather:
      if (value != leaf(block, 0, part)) wrong("not the block's rank's");
      return;
    case Collective::all_to_all:
      if (value != leaf(block, rank, part)) wrong("not the block's rank's");
      return;
    case Collective::scatter:
      if (value != leaf(shape.root, rank, part)) wrong("not the root's");
      return;
    default:
      break;
  }
  const uint32_t of_block = shape.collective == Collective::reduce_scatter ? rank : 0;
  if (!complete(value) || value.block != of_block || value.part != part)
    return wrong("not every contribution once");
  if (shape.collective == Collective::all_reduce && value != memory_[0][kOutput][part])
    return wrong("another tree than rank 0");
  if (all_[0].order != Order::rank) return;
  Value fold = leaf(0, of_block, part);
  for (uint32_t other = 1; other < ranks_; other++)
    fold = joined(fold, leaf(other, of_block, part));
  if (value != fold) wrong("no left fold in rank order");
}

}  // namespace hcomm::schedule
