// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator as a test of a transport needs them: endpoints that have met, and the
// loops of an engine in small: send, receive, wait. A rank is a thread (Fleet) or a process
// (process_test). Absent: matching, schedules.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/config.h"
#include "device/memory.h"
#include "support/poll_reactor.h"
#include "transport/transport.h"

namespace hcomm::test {

using namespace transport;  // NOLINT: a test of it

// Everything a rank owns.
class Rank {
 public:
  Rank(const Transport& transport, uint32_t rank, uint32_t ranks, const Config& config,
       Reactor& reactor, uint64_t nonce)
      : rank_(rank), ranks_(ranks), config_(config), memory_(config.huge_pages) {
    Place place;
    place.rank = rank;
    place.ranks = ranks;
    place.communicator = nonce;
    place.token[0] = nonce;
    place.token[1] = ~nonce;
    place.host_key = "host of the test";
    place.config = &config_;
    place.reactor = &reactor;
    place.memory = &memory_;
    endpoint_ = transport.open(place);
  }
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }
  Endpoint& endpoint() { return *endpoint_; }
  SharedMemory& memory() { return memory_; }
  Channel& to(uint32_t peer, uint32_t slot = 0) { return endpoint_->channel(peer, slot); }

 private:
  uint32_t rank_, ranks_;
  Config config_;
  SharedMemory memory_;
  std::unique_ptr<Endpoint> endpoint_;
};

inline Deadline soon() {
  return Deadline::after_ms(30'000);
}

// A message to send, with its segments.
struct Sending {
  std::vector<Segment> segments;
  Outgoing message;

  Sending(Label label, std::span<std::byte> bytes, std::optional<Exported> exported = {})
      : Sending(label, std::vector{whole(bytes)}) {
    message.exported = exported;
  }
  Sending(Label label, std::vector<Segment> parts) : segments(std::move(parts)) {
    message.label = label;
    for (const Segment& each : segments) message.bytes += each.bytes;
    message.segments = segments.data();
    message.segment_count = static_cast<uint32_t>(segments.size());
  }
  Sending(const Sending&) = delete;
  static Segment whole(std::span<std::byte> bytes) { return {bytes.data(), bytes.size()}; }
};

struct Receiving {
  std::vector<Segment> segments;
  Incoming message;

  Receiving(Label label, std::span<std::byte> to)
      : Receiving(label, std::vector{Sending::whole(to)}) {}
  Receiving(Label label, std::vector<Segment> parts) : segments(std::move(parts)) {
    message.label = label;
    for (const Segment& each : segments) message.bytes += each.bytes;
  }
};

// Yields: tests have more ranks than cores.
inline Status finish_send(Channel& channel, Outgoing& message, Deadline deadline = soon()) {
  while (!message.complete) {
    if (const Status status = channel.send(message); !status.ok()) return status;
    if (message.complete) break;
    if (deadline.passed()) return Code::timeout;
    std::this_thread::yield();
  }
  return {};
}

inline Status finish_receive(Channel& channel, Receiving& to, Deadline deadline = soon()) {
  while (!to.message.complete()) {
    if (const Status status = channel.receive(to.message, to.segments); !status.ok()) return status;
    if (to.message.complete()) break;
    if (deadline.passed()) return Code::timeout;
    std::this_thread::yield();
  }
  return {};
}

// Both at once, as an exchange of two ranks must.
inline Status exchange(Channel& out, Outgoing& message, Channel& in, Receiving& to,
                       Deadline deadline = soon()) {
  while (!message.complete || !to.message.complete()) {
    if (!message.complete)
      if (const Status status = out.send(message); !status.ok()) return status;
    if (!to.message.complete())
      if (const Status status = in.receive(to.message, to.segments); !status.ok()) return status;
    if (deadline.passed()) return Code::timeout;
    std::this_thread::yield();
  }
  return {};
}

// Bytes that tell where they are from.
inline std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> made(bytes);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < bytes; i++) {
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    made[i] = static_cast<std::byte>(state >> (8 * (i % 8)));
  }
  return made;
}

// The ranks of one process, a thread each.
class Fleet {
 public:
  Fleet(const Transport& transport, uint32_t ranks, const Config& config = quiet()) {
    const uint64_t nonce = std::random_device{}();
    std::vector<std::string> addresses;
    for (uint32_t r = 0; r < ranks; r++) {
      ranks_.push_back(std::make_unique<Rank>(transport, r, ranks, config, reactor_, nonce));
      addresses.push_back(ranks_.back()->endpoint().address());
    }
    run([&](Rank& rank) { rank.endpoint().connect(addresses, soon()); });
  }
  ~Fleet() {
    for (auto& each : ranks_) each.reset();
  }
  Rank& operator[](uint32_t rank) { return *ranks_[rank]; }

  void run(const std::function<void(Rank&)>& body) {
    std::vector<std::thread> threads;
    for (auto& each : ranks_) threads.emplace_back([&] { body(*each); });
    for (std::thread& each : threads) each.join();
  }

  static Config quiet() { return {}; }

 private:
  PollReactor reactor_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace hcomm::test
