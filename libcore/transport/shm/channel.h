// SPDX-License-Identifier: Apache-2.0
// The data path of transport/shm: a channel to one peer in one slot, over the lines, progress and
// ring of NodeMemory. One producer, one consumer, no locks, no system calls while both are awake.
// Owned by the endpoint. Absent: set-up, sleeping.
//
// A message goes in the line itself (40 bytes), or through the ring in fragments, so that the two
// copies overlap (through the sender's SharedRing where it goes to others too), or by reference:
// mapped (hcommMemAlloc memory), or pulled (process_vm_readv; with HCOMM_SHM_PULL=on only: it was
// slower than the ring at nearly every size on one core and two). A reference that the peer may be
// unable to follow is tentative: `done` stays 0 and nothing follows it until the peer has passed
// its line, so the bytes can still go through the ring instead.
//
// What a peer wrote is checked before it is used; what cannot be is Status internal.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "transport/shm/mail.h"
#include "transport/shm/node_memory.h"
#include "transport/shm/remote.h"
#include "transport/shm/shared_ring.h"
#include "transport/transport.h"

namespace hcomm::transport {

// A peer, as its channels need it.
struct ShmPeer {
  uint32_t member = 0;
  int pid = 0;
  AreaHead* head = nullptr;
  SocketName doorbell;
  int ring_from = -1;                            // a socket to ring the doorbell from
  const std::atomic<Pull>* pulled_by = nullptr;  // whether the peer may read our memory; null: no

  // To be called after whatever the peer may sleep for has been published. A plain load will do:
  // who goes to sleep first makes its flag visible to all processors (membarrier).
  void wake_if_asleep() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler only
    if (head->asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }
  void wake() const;
};

// Where a channel is in NodeMemory.
struct ChannelPlace {
  const NodeMemory* memory;
  uint32_t self, slot;
  SharedRing* shared = nullptr;  // of the slot, for what goes to several peers; null: none
  double far_ns = 80;  // a line that takes longer to come back comes from a far core
};

class ShmWriter {
 public:
  ShmWriter(const ChannelPlace& place, const ShmPeer& peer);
  Status send(Outgoing& message);
  // References are followed or refused by each peer for itself: those are no fan-outs.
  bool shares() const { return shared_ != nullptr && peer_.pulled_by == nullptr; }
  bool moved();
  // Takes back what the peer has passed of the shared ring; `moved` still tells of it.
  void look() { looked_ |= refresh(); }
  // Why a call was not ok, "": none was.
  const std::string& error() const { return error_; }

 private:
  Line* free_line();
  std::byte* free_ring(size_t bytes);
  void publish(Line& line, const Outgoing& message, Way way);
  void publish_fragment(Line& line, const Outgoing& message, Way way, const Fragment& fragment);
  bool refresh();
  void give_back(uint64_t consumed);
  void measure_distance(Line& line);
  Status settle(Outgoing& message);
  Status send_in_line(Outgoing& message);
  bool send_reference(Outgoing& message);
  Status send_fragments(Outgoing& message);
  bool next_fragment(Outgoing& message, size_t most, Fragment& fragment);
  bool next_shared(Outgoing& message, size_t most, Fragment& fragment);
  bool waited_long();
  bool proven(uint64_t id) const;

  const ShmPeer& peer_;
  Line* lines_;
  std::byte* ring_;
  uint64_t ring_bytes_;
  const Progress& progress_;
  uint64_t tail_ = 0;        // lines written
  uint64_t consumed_ = 0;    // of them, passed by the peer when we last looked
  uint64_t ring_at_ = 0;     // where the next fragment goes
  uint64_t ring_used_ = 0;   // bytes taken so far, skipped ends included
  uint64_t ring_freed_ = 0;  // of them, given back
  std::array<uint64_t, kLines> ring_used_after_{};  // each line
  // The fragment of the shared ring that each line tells of, 0: none; how many lines do.
  SharedRing* shared_;
  std::array<uint64_t, kLines> shared_in_{};
  uint32_t shared_lines_ = 0;
  bool looked_ = false;
  uint64_t full_since_ticks_ = 0;  // no room in it, 0: there was
  // How fragments are copied, by the distance of the peer's core, which is measured now and then.
  Copy copy_;
  uint64_t far_ticks_;
  uint32_t fragments_ = 0;
  bool was_far_ = false;
  // Allocations that the peer has mapped: references to them are not tentative.
  std::array<uint64_t, 8> proven_{};
  uint32_t next_proven_ = 0;
  std::string error_;
};

class ShmReader {
 public:
  ShmReader(const ChannelPlace& place, const ShmPeer& peer, PeerMaps& maps);
  Status peek(Incoming& message, View& view);
  void release(Incoming& message, size_t bytes);
  Status receive(Incoming& message, std::span<const Segment> to);
  bool moved();
  const std::string& error() const { return error_; }

 private:
  static constexpr size_t kStageBytes = 256 * kKiB;
  struct alignas(kCacheLine) Stage {
    std::byte bytes[kStageBytes];
  };
  // Takes the next line up, if it is there and can be read.
  Status open(Incoming& message);
  void pull_into(Incoming& message, std::span<const Segment> to);
  Status open_line(Incoming& message);
  Status open_fragment(const Fragment& fragment);
  Status open_mapped(const Fragment& fragment);
  void view_stage(const Incoming& message, View& view);
  void advance(Incoming& message, size_t bytes);
  void pass_line();
  void refuse_line(const Incoming& message);
  Status fail(Code code, std::string text);
  Status outside(const Fragment& fragment, std::string_view what, size_t bytes);

  const ShmPeer& peer_;
  const Line* lines_;
  const std::byte *ring_, *shared_ring_;
  uint64_t ring_bytes_;
  Progress& progress_;
  PeerMaps& maps_;
  uint64_t head_ = 0;     // lines passed
  uint64_t noticed_ = 0;  // lines that are known to be there
  // The line at hand.
  bool open_ = false;
  Way way_ = Way::in_line;
  const std::byte* data_ = nullptr;
  size_t bytes_ = 0, used_ = 0;
  uint64_t address_ = 0;  // pulled: in the peer's memory
  size_t staged_ = 0;     // of it, from used_ on
  std::unique_ptr<Stage> stage_;
  PeerMapPointer map_;
  uint64_t map_id_ = 0;
  std::string error_;
};

class ShmChannel final : public Channel {
 public:
  ShmChannel(const ChannelPlace& place, const ShmPeer& peer, PeerMaps& maps)
      : writer_(place, peer), reader_(place, peer, maps) {}
  Status send(Outgoing& message) override { return writer_.send(message); }
  bool shares() const override { return writer_.shares(); }
  Status peek(Incoming& message, View& view) override { return reader_.peek(message, view); }
  void release(Incoming& message, size_t bytes) override { reader_.release(message, bytes); }
  Status receive(Incoming& message, std::span<const Segment> to) override {
    return reader_.receive(message, to);
  }

  // Whether the peer has moved something since this was asked, or the channel looked itself.
  bool moved() {
    const bool written = reader_.moved();
    return writer_.moved() || written;
  }
  const std::string& error() const {
    return reader_.error().empty() ? writer_.error() : reader_.error();
  }

 private:
  ShmWriter writer_;
  ShmReader reader_;
};

}  // namespace hcomm::transport
