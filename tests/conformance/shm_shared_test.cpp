// SPDX-License-Identifier: Apache-2.0
// What goes to several peers at once: copied once, right for each, and never held up for good by
// one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "conformance/fleet.h"
#include "transport/shm/channel.h"

namespace hcomm::test {
namespace {

constexpr uint32_t kPeers = 3;
constexpr size_t kRing = 64 * kKiB;

class SharedTest : public testing::Test {
 protected:
  SharedTest()
      : memory_(NodeMemory::make({kPeers + 1, kRing}, token_, Switch::off)),
        ring_(*memory_, 0, 0),
        maps_([](uint32_t, uint64_t) { return ECONNREFUSED; }) {
    self_.head = &memory_->head(0);
    for (uint32_t i = 0; i < kPeers; i++) {
      peers_[i].member = i + 1;
      peers_[i].head = &memory_->head(i + 1);
      writers_[i] =
          std::make_unique<ShmChannel>(ChannelPlace{memory_.get(), 0, 0, &ring_}, peers_[i], maps_);
      readers_[i] =
          std::make_unique<ShmChannel>(ChannelPlace{memory_.get(), i + 1, 0}, self_, maps_);
    }
  }

  // A message to the first `peers` peers.
  struct Message {
    Message(uint32_t number, size_t bytes, uint32_t peers = kPeers)
        : data(pattern(bytes, number)), label{number, 7} {
      fanout.channels = peers;
      for (uint32_t i = 0; i < peers; i++) {
        sending.emplace_back(label, data);
        sending.back().message.fanout = &fanout;
        got.emplace_back(bytes);
      }
      for (auto& each : got) receiving.emplace_back(label, each);
    }
    std::vector<std::byte> data;
    Label label;
    Fanout fanout;
    std::deque<Sending> sending;
    std::deque<std::vector<std::byte>> got;
    std::deque<Receiving> receiving;
  };
  void send(Message& message, uint32_t peer) {
    ASSERT_TRUE(writers_[peer]->send(message.sending[peer].message).ok());
  }
  void receive(Message& message, uint32_t peer) {
    Receiving& in = message.receiving[peer];
    ASSERT_TRUE(readers_[peer]->receive(in.message, in.segments).ok()) << readers_[peer]->error();
  }
  static bool complete(Message& message, uint32_t peer) {
    return message.sending[peer].message.complete && message.receiving[peer].message.complete();
  }
  // Until it is all there.
  void deliver(Message& message) {
    for (bool open = true; open && now_ns() < end_ns_;) {
      open = false;
      for (uint32_t i = 0; i < message.sending.size(); i++) {
        if (!message.sending[i].message.complete) send(message, i);
        if (!message.receiving[i].message.complete()) receive(message, i);
        open |= !complete(message, i);
      }
    }
    for (size_t i = 0; i < message.got.size(); i++)
      EXPECT_TRUE(message.got[i] == message.data) << "peer " << i;
  }
  Way way(uint32_t peer, uint32_t line) { return memory_->lines(0, 0, peer + 1)[line].way; }

  const int64_t end_ns_ = now_ns() + 20'000'000'000;
  const uint64_t token_[2] = {1, 2};
  std::shared_ptr<NodeMemory> memory_;
  SharedRing ring_;
  PeerMaps maps_;
  ShmPeer self_, peers_[kPeers];
  std::unique_ptr<ShmChannel> writers_[kPeers], readers_[kPeers];
};

TEST_F(SharedTest, IsCopiedOnce) {
  Message message(1, 5'000);
  send(message, 0);
  std::fill(message.data.begin(), message.data.end(), std::byte{0});  // it has been read
  send(message, 1);
  send(message, 2);
  message.data = pattern(5'000, 1);
  deliver(message);
  for (uint32_t i = 0; i < kPeers; i++) EXPECT_EQ(way(i, 0), Way::shared);
}

TEST_F(SharedTest, GoesRoundTheRing) {
  for (uint32_t number = 1; number < 300; number++) {
    Message message(number, number * 997 % 200'000 + 256, number % 3 == 0 ? 2 : 3);
    deliver(message);
    if (HasFailure()) FAIL() << "message " << number;
  }
}

// Messages to the same peers and to others, under way at once.
TEST_F(SharedTest, MessagesInterleave) {
  Message first(1, 100'000, 2), second(2, 100'000);
  send(first, 0);
  send(second, 2);
  send(first, 1);
  while (!complete(first, 0) && now_ns() < end_ns_)
    for (uint32_t i = 0; i < 2; i++) {
      send(first, i);
      receive(first, i);
      receive(second, 2);
      if (!second.sending[2].message.complete) send(second, 2);
    }
  deliver(first);
  deliver(second);
}

TEST_F(SharedTest, APeerThatDoesNotReadHoldsUpNobody) {
  Message message(1, 3 * kRing);
  while (!complete(message, 1) && now_ns() < end_ns_) {
    send(message, 0);  // and is not received
    send(message, 1);
    receive(message, 1);
  }
  EXPECT_TRUE(message.got[1] == message.data);
  deliver(message);  // then the others get it, too
  Message next(2, 1'000);
  deliver(next);
}

}  // namespace
}  // namespace hcomm::test
