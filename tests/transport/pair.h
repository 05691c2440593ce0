// SPDX-License-Identifier: Apache-2.0
// Endpoints of one communicator in one process, and the loops that drive a message to its end. For
// tests of a transport; each rank may be driven by a thread of its own.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "reactor_thread.h"
#include "transport/transport.h"

namespace hcomm::test {

inline constexpr int64_t kLimitMs = 20'000;

struct Job {
  explicit Job(uint32_t size, const Config& settings = {}) : config(settings), ranks(size) {}

  transport::Place place(uint32_t rank) {
    transport::Place place;
    place.rank = rank;
    place.ranks = ranks;
    place.communicator = 7;
    place.token[0] = 0x1234'5678'9abc'def0;
    place.token[1] = 42;
    place.host_key = "test";
    place.config = &config;
    place.reactor = &reactor;
    return place;
  }

  // Opens all and tells everybody everybody's address.
  void open(const transport::Transport& transport) {
    for (uint32_t rank = 0; rank < ranks; rank++) endpoints.push_back(transport.open(place(rank)));
    std::vector<std::string> addresses;
    for (const auto& endpoint : endpoints) addresses.push_back(endpoint->address());
    for (const auto& endpoint : endpoints)
      endpoint->connect(addresses, Deadline::after_ms(kLimitMs));
  }

  Config config;
  uint32_t ranks;
  ReactorThread reactor;
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints;  // before the reactor they go
};

// Sleeps in the endpoint as the engine does.
inline void sleep_in(transport::Endpoint& endpoint) {
  std::vector<pollfd> descriptors;
  int cap_ms = 1000;
  if (endpoint.prepare_sleep(descriptors, cap_ms))
    ::poll(descriptors.data(), descriptors.size(), cap_ms);
  endpoint.after_sleep();
}

enum class Went : uint8_t { nowhere, on, through };

// Calls step until it is through; after some steps that went nowhere, sleeps.
template <typename Step>
Status drive(transport::Endpoint& endpoint, Step step) {
  const Deadline deadline = Deadline::after_ms(kLimitMs);
  for (int idle = 0;; idle++) {
    Went went = Went::nowhere;
    const Status status = step(went);
    if (!status.ok() || went == Went::through) return status;
    if (deadline.passed()) return Code::timeout;
    if (went == Went::on) idle = 0;
    if (idle > 100) sleep_in(endpoint);
  }
}

inline transport::Outgoing outgoing(transport::Label label, const transport::Segment& segment) {
  transport::Outgoing message;
  message.label = label;
  message.segments = &segment;
  message.segment_count = segment.bytes == 0 ? 0 : 1;
  message.bytes = segment.bytes;
  return message;
}

inline transport::Incoming incoming(transport::Label label, size_t bytes) {
  transport::Incoming message;
  message.label = label;
  message.bytes = bytes;
  return message;
}

inline Status send_all(transport::Endpoint& endpoint, transport::Channel& channel,
                       transport::Outgoing& message) {
  return drive(endpoint, [&](Went& went) {
    const size_t before = message.done;
    const Status status = channel.send(message);
    if (message.done != before) went = Went::on;
    if (message.complete) went = Went::through;
    return status;
  });
}

inline Status receive_all(transport::Endpoint& endpoint, transport::Channel& channel,
                          transport::Incoming& message, std::span<const transport::Segment> to) {
  return drive(endpoint, [&](Went& went) {
    const size_t before = message.done;
    const Status status = channel.receive(message, to);
    if (message.done != before) went = Went::on;
    if (message.complete()) went = Went::through;
    return status;
  });
}

// Receives by peek and release, as a reduction does; releases at most `most` bytes at a time.
inline Status peek_all(transport::Endpoint& endpoint, transport::Channel& channel,
                       transport::Incoming& message, std::byte* to, size_t most) {
  return drive(endpoint, [&](Went& went) -> Status {
    transport::View view;
    if (const Status status = channel.peek(message, view); !status.ok()) return status;
    if (message.complete()) went = Went::through;
    if (view.bytes == 0) return {};
    const size_t rest = message.bytes - message.done;
    if (view.bytes > rest || view.bytes < std::min<size_t>(64, rest)) return Code::internal;
    const size_t take = std::min(view.bytes, most);
    std::memcpy(to + message.done, view.data, take);
    channel.release(message, take);
    went = message.complete() ? Went::through : Went::on;
    return {};
  });
}

}  // namespace hcomm::test
