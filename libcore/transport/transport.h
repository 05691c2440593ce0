// SPDX-License-Identifier: Apache-2.0
// The transport contract, whole. A transport moves messages between the ranks of one communicator
// over channels. A channel joins two ranks in one window slot: an ordered, reliable,
// flow-controlled stream of messages in each direction. Channels are independent: a full or idle
// one never holds up another. Only the engine calls channels; it drives them by calling again:
// nothing here blocks, nothing throws, nothing allocates once a channel is warm.
//
// How the bytes travel (inline in a line, through a bounce ring, mapped, pulled, over a socket) is
// the sender's choice, told in the message, never known to schedules. Abilities are data (Reach).
//
// Set-up may throw Error. Owned by the communicator: Transport (a constant of the program) opens an
// Endpoint, the Endpoint owns its channels. Absent: matching, collectives, waiting, retries.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/reactor.h"
#include "device/memory.h"

namespace hcomm::transport {

inline constexpr uint32_t kMaxSlots = 8;  // window slots of a communicator

// What both ends of a message must agree on: which operation of the communicator, and that they
// mean the same by it (hash of collective, type, count, operator, root, plan). The length is
// compared too. A difference is Status invalid_usage; the engine then asks the control tree who is
// wrong.
struct Label {
  uint32_t sequence = 0, signature = 0;
  bool operator==(const Label&) const = default;
};

struct Segment {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// A place in a message: a segment, and bytes into it.
struct Position {
  uint32_t segment = 0;
  size_t offset = 0;
};
using Copy = void (*)(std::byte* to, const std::byte* from, size_t bytes);
// Copies the next `bytes` of the message to `to` and moves the position behind them.
void gather(std::span<const Segment> from, Position& position, std::span<std::byte> to, Copy copy);
// The rest of the segment that holds byte `at` of the message; empty at its end.
Segment piece_at(std::span<const Segment> segments, size_t at);
// Copies bytes to where they belong, from byte `at` of the message on.
void scatter(std::span<const std::byte> from, std::span<const Segment> to, size_t at, Copy copy);
// What to tell when the head of a message is not that of the one expected.
std::string difference_text(const Label& expected, size_t bytes, const Label& sent,
                            size_t sent_bytes);

// The same bytes go to several peers at once: channels that share it may copy them once for all.
// One a send, owned by the engine, until all its messages are complete.
inline constexpr size_t kFanoutFrom = 256;  // bytes from which one copy less pays
struct Fanout {
  uint32_t channels = 0;  // that share it
  // the transport's own:
  uint64_t first = 0, last = 0;  // parts that have been copied, 0: none
  Position position;             // behind them
};

// A message being sent; owned by the engine, must stay put until complete. Segments are the bytes
// in order; empty messages have none. Empty segments are allowed.
struct Outgoing {
  Label label;
  const Segment* segments = nullptr;
  uint32_t segment_count = 0;
  size_t bytes = 0;  // of all segments
  // Set when segments is one segment inside memory that peers can map (SharedMemory).
  std::optional<Exported> exported;
  Fanout* fanout = nullptr;  // where the channel shares it (Channel::shares)
  bool complete = false;  // set by the channel: the bytes may be overwritten
  // the channel's own:
  Position position;
  size_t done = 0;  // bytes handed over
  uint64_t ticket = 0, taken = 0;
  bool begun = false;
};

// A message being received.
struct Incoming {
  Label label;
  size_t bytes = 0;   // expected
  size_t done = 0;    // consumed so far; == bytes and begun: complete
  bool past_caches = false;  // where it goes nobody reads it soon
  // the channel's own:
  bool begun = false;  // the message's head has been seen and agrees
  bool complete() const { return begun && done == bytes; }
};

// Bytes of a peer that can be read where they lie.
struct View {
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Moves the message as far as it goes now. One message at a time: the next may begin when this
  // one is fully handed over (done == bytes && begun), even if not yet complete (a mapped buffer
  // that the peer still reads): then call send again with it, in any order, until complete.
  virtual Status send(Outgoing& message) = 0;

  // Whether messages of this channel may carry a Fanout.
  virtual bool shares() const { return false; }

  // The next bytes of the message where they lie, empty when there are none now. Never more than
  // bytes - done; at least min(64, bytes - done) or nothing, so that no element is split; data is
  // aligned as the sender's was, or to 64. Stays valid until release. An empty message is complete
  // after the peek that sees its head (`begun`).
  virtual Status peek(Incoming& message, View& view) = 0;
  // Gives back the first `bytes` of the last view (done advances).
  virtual void release(Incoming& message, size_t bytes) = 0;

  // Moves what is there to where it belongs: segments hold the whole message. By default by peek,
  // copy and release; a socket reads straight into place, a pull copies once.
  virtual Status receive(Incoming& message, std::span<const Segment> to);
};

// What a pair offers, as data; for the cost model and explanations.
struct Reach {
  double latency_us = 0, bytes_per_us = 0;  // nominal; the communicator measures
  bool map = false;                         // peers read hcommMemAlloc memory in place
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // What peers need to reach this rank; opaque. Exchanged among all ranks, in rank order.
  virtual std::string address() const = 0;
  // Learns all addresses and finds out whom it can reach (an empty address: a rank without this
  // transport). May block until `deadline`. Being unable to reach somebody is an answer, not an
  // error.
  virtual void connect(std::span<const std::string> addresses, Deadline deadline) = 0;
  virtual std::optional<Reach> reach(uint32_t peer) const = 0;
  // The channel to peer in slot < kMaxSlots, made at first use; it may be still connecting, then
  // nothing moves on it for a while. Only after connect, only peers that both ends reach.
  virtual Channel& channel(uint32_t peer, uint32_t slot) = 0;

  // To sleep: `prepare_sleep` promises that from now on whatever moves a channel of this endpoint
  // makes one of the descriptors that it appends readable/writable, and returns false when
  // something has moved already. After the wait, `after_sleep`. The engine polls for at most
  // `cap_ms` (it may be lowered where a wake-up cannot be promised).
  virtual bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) = 0;
  virtual void after_sleep() = 0;

  // What the last Status other than ok of a channel to this peer was about, for the message of the
  // error: "send: Connection reset by peer". From the thread that calls the channels. "": nothing
  // to tell.
  virtual std::string last_error(uint32_t) const { return {}; }
};

// Where an endpoint is opened.
struct Place {
  uint32_t rank = 0, ranks = 1;
  uint64_t communicator = 0;   // unique in the job
  uint64_t token[2] = {0, 0};  // nonce of the communicator: proves that a connection belongs to it
  std::string host_key;        // ranks of equal key may share memory
  const Config* config = nullptr;
  Reactor* reactor = nullptr;
  SharedMemory* memory = nullptr;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;  // "shm"
  // "" = usable on this machine, else why not.
  virtual std::string probe(const Config& config) const = 0;
  virtual std::unique_ptr<Endpoint> open(const Place& place) const = 0;
};

// All transports in the order of transports.def, which is the order of preference.
std::span<const Transport* const> all();
const Transport* find(std::string_view name);

}  // namespace hcomm::transport
