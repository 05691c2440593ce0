// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>

#include "base/bytes.h"
#include "datatype/kernels.h"

namespace hcomm::engine {

using schedule::kScratch;
using schedule::Slice;
using transport::Incoming;
using transport::Outgoing;
using transport::Segment;
using transport::View;

Executor::Executor(const Surroundings& surroundings) : around_(surroundings) {}

void Executor::bind(const Operation& operation, const Binding& binding) {
  const Program& program = *operation.program;
  operation_ = operation;
  binding_ = &binding;
  status_ = {};
  failed_peer_ = -1;
  tiles_ = binding.tiles(*operation.shape);
  scratch_offsets_.resize(program.scratch.size() + 1);
  size_t scratch_bytes = 0;
  for (size_t i = 0; i < program.scratch.size(); i++) {
    scratch_offsets_[i] = scratch_bytes;
    scratch_bytes += binding.scratch_bytes(program.scratch[i]);
  }
  open_slots_ = static_cast<uint32_t>(std::min<size_t>(operation.window, tiles_));
  if (slots_.size() < open_slots_) slots_.resize(open_slots_);
  for (uint32_t s = 0; s < open_slots_; s++) {
    Slot& slot = slots_[s];
    slot.tile = s;
    if (slot.waits.size() < program.actions.size()) slot.waits.resize(program.actions.size());
    if (slot.progress.size() < program.actions.size()) slot.progress.resize(program.actions.size());
    if (slot.outgoing.size() < program.outgoing) slot.outgoing.resize(program.outgoing);
    if (slot.incoming.size() < program.incoming) slot.incoming.resize(program.incoming);
    if (slot.views.size() < program.incoming) slot.views.resize(program.incoming);
    if (slot.segments.size() < program.segments) slot.segments.resize(program.segments);
    if (slot.channels.size() < around_.ranks) slot.channels.resize(around_.ranks);
    if (slot.scratch.size() < scratch_bytes + kCacheLine)
      slot.scratch.resize(scratch_bytes + kCacheLine);
    const auto base = reinterpret_cast<uintptr_t>(slot.scratch.data());
    slot.scratch_data = slot.scratch.data() + (round_up(base, kCacheLine) - base);
  }
  for (uint32_t s = 0; s < std::min<size_t>(operation.window, tiles_); s++) begin_tile(slots_[s]);
}

void Executor::begin_tile(Slot& slot) {
  const Program& program = *operation_.program;
  const auto count = static_cast<uint32_t>(program.actions.size());
  slot.left = count;
  for (uint32_t i = 0; i < count; i++) slot.waits[i] = program.actions[i].waits;
  slot.active.assign(program.first.begin(), program.first.end());
  for (const uint32_t index : program.first) start(slot, index);
  if (count == 0) end_tile(slot);
}

// The slot's tile is done: the output's last write, then the slot's next tile, if there is one.
void Executor::end_tile(Slot& slot) {
  if (operation_.avg_ranks > 0) {
    const uint32_t chunks =
        blocks_of(*operation_.shape, schedule::kOutput) * operation_.program->parts;
    for (uint32_t i = 0; i < chunks; i++) {
      const Segment segment = binding_->chunk(schedule::kOutput, i, slot.tile);
      finish_avg(operation_.type, segment.data, segment.data,
                 segment.bytes / binding_->element_bytes, operation_.avg_ranks);
    }
  }
  // Tiles of a slot are window apart, so that peers agree which slot a tile is in.
  slot.tile += operation_.window;
  if (slot.tile >= tiles_) {
    open_slots_--;
    return;
  }
  begin_tile(slot);
}

bool Executor::advance() {
  bool moved = false;
  const auto used = static_cast<uint32_t>(std::min<size_t>(operation_.window, tiles_));
  for (uint32_t s = 0; s < used && status_.ok(); s++)
    if (slots_[s].left > 0) moved |= advance_slot(slots_[s]);
  return moved;
}

bool Executor::advance_slot(Slot& slot) {
  bool moved = false;
  for (size_t i = 0; i < slot.active.size() && status_.ok();) {
    const uint32_t index = slot.active[i];
    if (!run(slot, index, moved)) {
      i++;
      continue;
    }
    moved = true;
    slot.active[i] = slot.active.back();
    slot.active.pop_back();
    finish(slot, index);
    if (slot.left == 0) {
      end_tile(slot);
      return true;
    }
  }
  return moved;
}

void Executor::finish(Slot& slot, uint32_t index) {
  const Program& program = *operation_.program;
  const Action& action = program.actions[index];
  slot.left--;
  for (uint32_t i = 0; i < action.next_count; i++) {
    const uint32_t next = program.next[action.first_next + i];
    if (--slot.waits[next] > 0) continue;
    start(slot, next);
    slot.active.push_back(next);
  }
}

// Prepares the messages of an action; nothing moves yet.
void Executor::start(Slot& slot, uint32_t index) {
  const Program& program = *operation_.program;
  const Action& action = program.actions[index];
  slot.progress[index] = 0;
  const Source* sources = program.sources.data() + action.first_source;
  Segment* segments = slot.segments.data() + action.first_segment;
  if (action.kind == ActionKind::send) {
    const Slice slice = sources[0].slice;
    size_t bytes = 0;
    for (uint32_t i = 0; i < slice.count; i++) {
      segments[i] = locate(slot, slice, i);
      bytes += segments[i].bytes;
    }
    for (uint32_t i = 0; i < action.peer_count; i++) {
      Outgoing& out = slot.outgoing[action.first_message + i];
      out = {.label = operation_.label, .segments = segments, .segment_count = slice.count,
             .bytes = bytes};
      if (slice.count != 1 || slice.buffer == kScratch) continue;
      const Buffer& buffer = binding_->buffers[slice.buffer];
      if (!buffer.exported || bytes == 0) continue;
      out.exported = buffer.exported;
      out.exported->offset += static_cast<uint64_t>(segments[0].data - buffer.data);
    }
    return;
  }
  if (action.kind == ActionKind::receive)
    for (uint32_t i = 0; i < action.to.count; i++) segments[i] = locate(slot, action.to, i);
  if (action.kind == ActionKind::copy) return;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0)
      slot.incoming[sources[i].message] = {.label = operation_.label,
                                           .bytes = slice_bytes(slot, sources[i].slice)};
}

bool Executor::run(Slot& slot, uint32_t index, bool& moved) {
  const Action& action = operation_.program->actions[index];
  switch (action.kind) {
    case ActionKind::send: return run_send(slot, action, moved);
    case ActionKind::receive: return run_receive(slot, action, moved);
    case ActionKind::fold: return run_fold(slot, index, moved);
    case ActionKind::copy: run_copy(slot, action); return true;
  }
  return false;
}

bool Executor::run_send(Slot& slot, const Action& action, bool& moved) {
  bool all = true;
  for (uint32_t i = 0; i < action.peer_count; i++) {
    Outgoing& out = slot.outgoing[action.first_message + i];
    if (out.complete) continue;
    const uint32_t peer = operation_.program->peers[action.first_peer + i];
    transport::Channel* to = channel(slot, peer);
    if (to == nullptr) return false;
    const size_t before = out.done;
    if (const Status status = to->send(out); !status.ok()) [[unlikely]] {
      fail(status, peer);
      return false;
    }
    if (out.complete) around_.recorder->count_sent(peer, out.bytes);
    moved |= out.complete || out.done != before;
    all &= out.complete;
  }
  return all;
}

bool Executor::run_receive(Slot& slot, const Action& action, bool& moved) {
  const Source& source = operation_.program->sources[action.first_source];
  const auto peer = static_cast<uint32_t>(source.peer);
  Incoming& in = slot.incoming[source.message];
  transport::Channel* from = channel(slot, peer);
  if (from == nullptr) return false;
  const size_t before = in.done;
  const Status status =
      from->receive(in, {slot.segments.data() + action.first_segment, action.to.count});
  if (!status.ok()) [[unlikely]] {
    fail(status, peer);
    return false;
  }
  moved |= in.done != before;
  if (!in.complete()) return false;
  around_.recorder->count_received(peer, in.bytes);
  return true;
}

// Folds what all incoming messages have, piece by piece. Chunks of the sources and of the target have
// equal lengths, pairwise, so one offset serves for all.
bool Executor::run_fold(Slot& slot, uint32_t index, bool& moved) {
  const Action& action = operation_.program->actions[index];
  size_t& progress = slot.progress[index];  // bytes of the target
  size_t chunk_start = 0;
  for (uint32_t k = 0; k < action.to.count; k++) {
    const Segment whole = locate(slot, action.to, k);
    while (progress < chunk_start + whole.bytes) {
      const size_t offset = progress - chunk_start;
      const size_t ready = fold_ready(slot, action, whole.bytes - offset, moved);
      if (ready == 0) return false;
      fold_some(slot, action, {whole.data + offset, ready}, (size_t{k} << 48) | offset);
      progress += ready;
      moved = true;
    }
    chunk_start += whole.bytes;
  }
  if (action.incoming > 0 && chunk_start == 0) {  // empty messages have heads all the same
    fold_ready(slot, action, 0, moved);
  }
  bool complete = status_.ok();
  const Source* sources = operation_.program->sources.data() + action.first_source;
  for (uint32_t i = 0; i < action.source_count && complete; i++)
    complete = sources[i].peer < 0 || slot.incoming[sources[i].message].complete();
  if (!complete) return false;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0)
      around_.recorder->count_received(static_cast<uint32_t>(sources[i].peer),
                                       slot.incoming[sources[i].message].bytes);
  return true;
}

// Bytes, whole elements, that every incoming message has in view now, at most `want`.
size_t Executor::fold_ready(Slot& slot, const Action& action, size_t want, bool& moved) {
  const Source* sources = operation_.program->sources.data() + action.first_source;
  size_t ready = want;
  for (uint32_t i = 0; i < action.source_count; i++) {
    if (sources[i].peer < 0) continue;
    const auto peer = static_cast<uint32_t>(sources[i].peer);
    View& view = slot.views[sources[i].message];
    view = {};
    transport::Channel* from = channel(slot, peer);
    if (from == nullptr) return 0;
    Incoming& in = slot.incoming[sources[i].message];
    if (in.complete()) continue;
    const bool begun = in.begun;
    if (const Status status = from->peek(in, view); !status.ok()) [[unlikely]] {
      fail(status, peer);
      return 0;
    }
    moved |= in.begun != begun;
    ready = std::min(ready, view.bytes);
    if (ready == 0 && want != 0) return 0;
  }
  const size_t element = binding_->element_bytes;
  return ready == want ? ready : ready / element * element;
}

// `place` is (chunk of the slices << 48) | offset in it.
void Executor::fold_some(Slot& slot, const Action& action, Segment to, size_t place) {
  const Source* sources = operation_.program->sources.data() + action.first_source;
  const auto chunk_index = static_cast<uint32_t>(place >> 48);
  const size_t offset = place & ((size_t{1} << 48) - 1);
  const size_t count = to.bytes / binding_->element_bytes;
  fold_inputs_.clear();
  for (uint32_t i = 0; i < action.source_count; i++)
    fold_inputs_.push_back(sources[i].peer >= 0
                               ? slot.views[sources[i].message].data
                               : locate(slot, sources[i].slice, chunk_index).data + offset);
  if (action.source_count == 2)
    reduce2(operation_.type, operation_.op, to.data, fold_inputs_[0], fold_inputs_[1], count);
  else
    reduce(operation_.type, operation_.op, to.data, fold_inputs_, count);
  if (action.incoming == 0) return;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0)
      channel(slot, static_cast<uint32_t>(sources[i].peer))
          ->release(slot.incoming[sources[i].message], to.bytes);
}

void Executor::run_copy(Slot& slot, const Action& action) {
  const Slice from = operation_.program->sources[action.first_source].slice;
  for (uint32_t k = 0; k < action.to.count; k++) {
    const Segment target = locate(slot, action.to, k), source = locate(slot, from, k);
    if (target.bytes > 0 && target.data != source.data)
      copy_bytes(target.data, source.data, target.bytes);
  }
}

Segment Executor::locate(const Slot& slot, Slice slice, uint32_t index) const {
  const uint32_t chunk = slice.chunk + index;
  if (slice.buffer != kScratch) return binding_->chunk(slice.buffer, chunk, slot.tile);
  return {slot.scratch_data + scratch_offsets_[chunk],
          binding_->mirrored_bytes(operation_.program->scratch[chunk], slot.tile)};
}

size_t Executor::slice_bytes(const Slot& slot, Slice slice) const {
  size_t bytes = 0;
  for (uint32_t i = 0; i < slice.count; i++) bytes += locate(slot, slice, i).bytes;
  return bytes;
}

transport::Channel* Executor::channel(Slot& slot, uint32_t peer) {
  transport::Channel*& cached = slot.channels[peer];
  if (cached != nullptr) [[likely]] return cached;
  cached = around_.links->channel(peer, static_cast<uint32_t>(&slot - slots_.data()));
  if (cached == nullptr) fail(Code::unavailable, peer);
  return cached;
}

void Executor::fail(Status status, uint32_t peer) {
  if (!status_.ok()) return;
  status_ = status;
  failed_peer_ = static_cast<int>(peer);
}

int Executor::waiting_for(uint32_t& step) const {
  const auto used = static_cast<uint32_t>(std::min<size_t>(operation_.window, tiles_));
  for (uint32_t s = 0; s < used; s++) {
    const Slot& slot = slots_[s];
    if (slot.left == 0) continue;
    for (const uint32_t index : slot.active) {
      const Action& action = operation_.program->actions[index];
      step = index;
      for (uint32_t i = 0; i < action.source_count; i++) {
        const Source& source = operation_.program->sources[action.first_source + i];
        if (source.peer >= 0 && !slot.incoming[source.message].complete()) return source.peer;
      }
      for (uint32_t i = 0; i < action.peer_count; i++)
        if (!slot.outgoing[action.first_message + i].complete)
          return static_cast<int>(operation_.program->peers[action.first_peer + i]);
    }
  }
  return -1;
}

}  // namespace hcomm::engine
