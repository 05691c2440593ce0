// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/copy.h"
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
  tiles_ = binding.tiles(*operation.shape);
  scratch_offsets_.resize(program.scratch.size());
  size_t scratch_bytes = 0;
  for (size_t i = 0; i < program.scratch.size(); i++) {
    scratch_offsets_[i] = scratch_bytes;
    scratch_bytes += binding.scratch_bytes(program.scratch[i]);
  }
  used_slots_ = static_cast<uint32_t>(std::min<size_t>(operation.window, tiles_));
  if (slots_.size() < used_slots_) slots_.resize(used_slots_);
  for (uint32_t s = 0; s < used_slots_; s++) make_room(slots_[s], scratch_bytes);
  begin();
}

void Executor::bind_again(transport::Label label) {
  operation_.label = label;
  begin();
}

void Executor::make_room(Slot& slot, size_t scratch_bytes) {
  const Program& program = *operation_.program;
  const auto room = [](auto& vector, size_t size) {
    if (vector.size() < size) vector.resize(size);
  };
  room(slot.waits, program.actions.size());
  room(slot.progress, program.actions.size());
  slot.active.reserve(program.actions.size());
  room(slot.outgoing, program.outgoing);
  room(slot.fanouts, program.outgoing);
  room(slot.incoming, program.incoming);
  room(slot.views, program.incoming);
  room(slot.segments, program.segments);
  room(slot.channels, around_.ranks);
  room(slot.scratch, scratch_bytes + kCacheLine);
  const auto base = reinterpret_cast<uintptr_t>(slot.scratch.data());
  slot.scratch_data = slot.scratch.data() + (round_up(base, kCacheLine) - base);
  slot.prepared_tile = Slot::kNoTile;
}

void Executor::begin() {
  status_ = {};
  failed_peer_ = -1;
  open_slots_ = used_slots_;
  for (uint32_t s = 0; s < used_slots_; s++) {
    slots_[s].tile = s;
    begin_tile(slots_[s]);
  }
}

void Executor::begin_tile(Slot& slot) {
  const Program& program = *operation_.program;
  const auto count = static_cast<uint32_t>(program.actions.size());
  if (slot.prepared_tile != slot.tile) prepare(slot);
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
    if (operation_.store == Store::streaming) far_fence();  // results are there for all threads
    open_slots_--;
    return;
  }
  begin_tile(slot);
}

bool Executor::advance() {
  bool moved = false;
  for (uint32_t s = 0; s < used_slots_ && status_.ok(); s++)
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

// Where all slices lie in the slot's tile, and how long its messages are.
void Executor::prepare(Slot& slot) {
  const Program& program = *operation_.program;
  slot.prepared_tile = slot.tile;
  for (const Action& action : program.actions) {
    locate(slot, action.to, action.to_segment);
    for (uint32_t i = 0; i < action.source_count; i++) {
      const Source& source = program.sources[action.first_source + i];
      const size_t bytes = locate(slot, source.slice, source.segment);
      if (source.peer >= 0) slot.incoming[source.message].bytes = bytes;
      if (action.kind == ActionKind::send) prepare_send(slot, action, bytes);
    }
  }
}

// Fills the segments of a slice; its bytes.
size_t Executor::locate(Slot& slot, Slice slice, uint32_t segment) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < slice.count; i++) {
    const uint32_t chunk = slice.chunk + i;
    Segment& at = slot.segments[segment + i];
    if (slice.buffer == kScratch)
      at = {slot.scratch_data + scratch_offsets_[chunk],
            binding_->mirrored_bytes(operation_.program->scratch[chunk], slot.tile)};
    else
      at = binding_->chunk(slice.buffer, chunk, slot.tile);
    bytes += at.bytes;
  }
  return bytes;
}

void Executor::prepare_send(Slot& slot, const Action& action, size_t bytes) {
  const Source& source = operation_.program->sources[action.first_source];
  const Segment* segments = slot.segments.data() + source.segment;
  std::optional<Exported> exported;
  if (source.slice.count == 1 && source.slice.buffer != kScratch && bytes > 0) {
    const Buffer& buffer = binding_->buffers[source.slice.buffer];
    exported = buffer.exported;
    if (exported) exported->offset += static_cast<uint64_t>(segments[0].data - buffer.data);
  }
  for (uint32_t i = 0; i < action.peer_count; i++) {
    Outgoing& out = slot.outgoing[action.first_message + i];
    out.segments = segments;
    out.segment_count = source.slice.count;
    out.bytes = bytes;
    out.exported = exported;
  }
}

// Sets the messages of an action back to their beginning; nothing moves yet.
void Executor::start(Slot& slot, uint32_t index) {
  const Action& action = operation_.program->actions[index];
  if (action.kind == ActionKind::send) {
    for (uint32_t i = 0; i < action.peer_count; i++) {
      Outgoing& out = slot.outgoing[action.first_message + i];
      out.label = operation_.label;
      out.complete = out.begun = false;
      out.position = {};
      out.done = 0;
      out.ticket = out.taken = 0;
      out.fanout = nullptr;
    }
    if (action.peer_count > 1) fan_out(slot, action);
    return;
  }
  slot.progress[index] = 0;
  if (action.incoming == 0) return;
  const Source* sources = operation_.program->sources.data() + action.first_source;
  for (uint32_t i = 0; i < action.source_count; i++) {
    if (sources[i].peer < 0) continue;
    Incoming& in = slot.incoming[sources[i].message];
    in.label = operation_.label;
    in.done = 0;
    in.begun = false;
    in.past_caches = store_of(action) == Store::streaming;
  }
}

// Lets the channels of a send to several peers share its bytes. What is mapped has no copies.
void Executor::fan_out(Slot& slot, const Action& action) {
  transport::Fanout& fanout = slot.fanouts[action.first_message] = {};
  transport::Outgoing* const first = slot.outgoing.data() + action.first_message;
  for (uint32_t i = 0; i < action.peer_count; i++) {
    if (first->bytes < transport::kFanoutFrom || first->exported) continue;
    const transport::Channel* to = channel(slot, operation_.program->peers[action.first_peer + i]);
    if (to == nullptr || !to->shares()) continue;
    first[i].fanout = &fanout;
    fanout.channels++;
  }
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
    if (out.complete) around_.recorder->count_sent(job_rank(peer), out.bytes);
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
      from->receive(in, {slot.segments.data() + source.segment, source.slice.count});
  if (!status.ok()) [[unlikely]] {
    fail(status, peer);
    return false;
  }
  moved |= in.done != before;
  if (!in.complete()) return false;
  around_.recorder->count_received(job_rank(peer), in.bytes);
  return true;
}

// Folds what all incoming messages have, piece by piece. Chunks of the sources and of the target
// have equal lengths, pairwise, so one offset serves for all.
bool Executor::run_fold(Slot& slot, uint32_t index, bool& moved) {
  const Action& action = operation_.program->actions[index];
  size_t& progress = slot.progress[index];  // bytes of the target
  size_t chunk_start = 0;
  for (uint32_t k = 0; k < action.to.count; k++) {
    const size_t bytes = slot.segments[action.to_segment + k].bytes;
    while (progress < chunk_start + bytes) {
      const size_t offset = progress - chunk_start;
      const size_t ready = fold_ready(slot, action, bytes - offset, moved);
      if (ready == 0) return false;
      fold_some(slot, action, k, offset, ready);
      progress += ready;
      moved = true;
    }
    chunk_start += bytes;
  }
  if (chunk_start == 0) fold_ready(slot, action, 0, moved);  // empty messages have heads too
  const Source* sources = operation_.program->sources.data() + action.first_source;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0 && !slot.incoming[sources[i].message].complete()) return false;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0)
      around_.recorder->count_received(job_rank(static_cast<uint32_t>(sources[i].peer)),
                                       slot.incoming[sources[i].message].bytes);
  return status_.ok();
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
  return ready == want ? ready : ready / binding_->element_bytes * binding_->element_bytes;
}

void Executor::fold_some(Slot& slot, const Action& action, uint32_t chunk, size_t offset,
                         size_t bytes) {
  const Source* sources = operation_.program->sources.data() + action.first_source;
  const auto data_of = [&](const Source& source) -> const std::byte* {
    return source.peer >= 0 ? slot.views[source.message].data
                            : slot.segments[source.segment + chunk].data + offset;
  };
  std::byte* to = slot.segments[action.to_segment + chunk].data + offset;
  const size_t count = bytes / binding_->element_bytes;
  if (action.source_count == 2) {
    reduce2(operation_.type, operation_.op, to, data_of(sources[0]), data_of(sources[1]), count,
            store_of(action));
  } else {
    fold_inputs_.clear();
    for (uint32_t i = 0; i < action.source_count; i++) fold_inputs_.push_back(data_of(sources[i]));
    reduce(operation_.type, operation_.op, to, fold_inputs_, count, store_of(action));
  }
  if (action.incoming == 0) return;
  for (uint32_t i = 0; i < action.source_count; i++)
    if (sources[i].peer >= 0)
      channel(slot, static_cast<uint32_t>(sources[i].peer))
          ->release(slot.incoming[sources[i].message], bytes);
}

void Executor::run_copy(Slot& slot, const Action& action) {
  const Source& from = operation_.program->sources[action.first_source];
  for (uint32_t k = 0; k < action.to.count; k++) {
    const Segment target = slot.segments[action.to_segment + k];
    const Segment source = slot.segments[from.segment + k];
    if (target.bytes > 0 && target.data != source.data)
      copy_bytes(target.data, source.data, target.bytes, store_of(action));
  }
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
  for (uint32_t s = 0; s < used_slots_; s++) {
    const Slot& slot = slots_[s];
    if (slot.left == 0) continue;
    for (const uint32_t index : slot.active) {
      const Action& action = operation_.program->actions[index];
      step = action.step;
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
