// SPDX-License-Identifier: Apache-2.0
// The executor runs one operation of one rank: its program once a tile, `window` tiles at a time,
// each in a window slot with channels, scratch and counters of its own. advance() never waits,
// never throws and never allocates once a plan has run: it moves what can be moved. Waiting is
// drive.h's. Owned by a communicator and reused for each of its operations; used by one thread at a
// time.
//
//   bind() --> advance()* --> done() | failed()
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "datatype/kernels.h"
#include "datatype/types.h"
#include "engine/binding.h"
#include "engine/program.h"
#include "trace/recorder.h"
#include "transport/transport.h"

namespace hcomm::engine {

// The channels of a communicator, whatever transport each pair has. Implemented by comm.
class Links {
 public:
  virtual ~Links() = default;
  // Null when the pair has no way to each other.
  virtual transport::Channel* channel(uint32_t peer, uint32_t slot) = 0;
};

// What an executor needs beside the program: fixed for a communicator's life.
struct Surroundings {
  Links* links = nullptr;
  trace::Recorder* recorder = nullptr;
  uint32_t ranks = 1;
  const uint32_t* job_ranks = nullptr;  // of each of ours, for the recorder; null: the same
};

// One call.
struct Operation {
  const schedule::Shape* shape = nullptr;
  const Program* program = nullptr;
  uint32_t window = 1;
  transport::Label label;
  Type type = Type::uint8;
  Op op = Op::sum;
  unsigned avg_ranks = 0;  // > 0: divide the output by it, after the last step of each tile
  Store store = Store::cached;  // of results that nothing of the operation reads again
};

class Executor {
 public:
  explicit Executor(const Surroundings& surroundings);

  // `binding` and what `operation` points to stay valid until the end.
  void bind(const Operation& operation, const Binding& binding);
  // The operation that was bound last once more, with the same binding, unchanged.
  void bind_again(transport::Label label);
  // Moves what can be moved; true when anything did.
  bool advance();
  bool done() const { return open_slots_ == 0; }
  bool failed() const { return !status_.ok(); }
  Status status() const { return status_; }
  // The peer that something waits for, -1: nobody; for reports. `step`: the schedule's that waits.
  int waiting_for(uint32_t& step) const;
  int failed_peer() const { return failed_peer_; }

 private:
  struct Slot {
    static constexpr size_t kNoTile = SIZE_MAX;
    size_t tile = 0, prepared_tile = kNoTile;
    uint32_t left = 0;                // actions not yet done
    std::vector<uint32_t> waits;      // of each action
    std::vector<uint32_t> active;     // started, not done
    std::vector<size_t> progress;     // of each fold: bytes
    // What the program's slices and messages are in this tile.
    std::vector<transport::Segment> segments;
    std::vector<transport::Outgoing> outgoing;
    std::vector<transport::Fanout> fanouts;  // of a send to several peers: at its first message
    std::vector<transport::Incoming> incoming;
    std::vector<transport::View> views;
    std::vector<std::byte> scratch;
    std::vector<transport::Channel*> channels;  // of each peer
    std::byte* scratch_data = nullptr;
  };

  void make_room(Slot& slot, size_t scratch_bytes);
  void begin();
  void begin_tile(Slot& slot);
  void end_tile(Slot& slot);
  void prepare(Slot& slot);
  size_t locate(Slot& slot, schedule::Slice slice, uint32_t segment);
  void prepare_send(Slot& slot, const Action& action, size_t bytes);
  bool advance_slot(Slot& slot);
  void start(Slot& slot, uint32_t index);
  void fan_out(Slot& slot, const Action& action);
  void finish(Slot& slot, uint32_t index);
  bool run(Slot& slot, uint32_t index, bool& moved);
  bool run_send(Slot& slot, const Action& action, bool& moved);
  bool run_receive(Slot& slot, const Action& action, bool& moved);
  bool run_fold(Slot& slot, uint32_t index, bool& moved);
  void run_copy(Slot& slot, const Action& action);
  size_t fold_ready(Slot& slot, const Action& action, size_t want, bool& moved);
  void fold_some(Slot& slot, const Action& action, uint32_t chunk, size_t offset, size_t bytes);
  Store store_of(const Action& action) const {
    return action.result ? operation_.store : Store::cached;
  }
  transport::Channel* channel(Slot& slot, uint32_t peer);
  uint32_t job_rank(uint32_t peer) const {
    return around_.job_ranks != nullptr ? around_.job_ranks[peer] : peer;
  }
  void fail(Status status, uint32_t peer);

  Surroundings around_;
  Operation operation_;
  const Binding* binding_ = nullptr;
  std::vector<size_t> scratch_offsets_;
  std::vector<const void*> fold_inputs_;
  std::vector<Slot> slots_;
  size_t tiles_ = 0;
  uint32_t used_slots_ = 0, open_slots_ = 0;
  Status status_;
  int failed_peer_ = -1;
};

}  // namespace hcomm::engine
