// SPDX-License-Identifier: Apache-2.0
// One body over the registry: what the contract of transport.h promises, for every transport. A
// skip comes from probe() only.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>

#include "conformance/processes.h"

namespace hcomm::test {
namespace {

class TransportTest : public testing::TestWithParam<const Transport*> {
 protected:
  void SetUp() override {
    const std::string reason = transport().probe(Config{});
    if (!reason.empty()) GTEST_SKIP() << transport().name() << ": " << reason;
  }
  const Transport& transport() const { return *GetParam(); }
  bool alone() const { return transport().name() == "self"; }
  uint32_t ranks() const { return alone() ? 1 : 2; }
  // The rank that rank 0 of a pair talks to.
  uint32_t other() const { return alone() ? 0 : 1; }
};

std::vector<size_t> sizes(size_t ring) {
  return {0,  1,    7,    8,    15,       39,   40,       41,       63,          64,
          65, 4095, 4096, 4097, ring - 1, ring, ring + 1, 2 * ring, 2 * ring + 3};
}

// Every rank sends each size to every other (alone: to itself) and receives the same.
void exchange_all(Rank& rank, std::span<const size_t> lengths) {
  const uint32_t n = rank.ranks();
  uint32_t sequence = 0;
  for (const size_t bytes : lengths) {
    for (uint32_t shift = n == 1 ? 0 : 1; shift < n; shift++) {
      const uint32_t to = (rank.rank() + shift) % n, from = (rank.rank() + n - shift) % n;
      const Label label{++sequence, 77};
      std::vector<std::byte> data = pattern(bytes, rank.rank() + 100 * bytes), got(bytes);
      Sending sending(label, data);
      Receiving receiving(label, got);
      ASSERT_EQ(exchange(rank.to(to), sending.message, rank.to(from), receiving), Status())
          << bytes << " bytes";
      ASSERT_TRUE(got == pattern(bytes, from + 100 * bytes)) << bytes << " bytes from " << from;
    }
    if (n == 1) {
      const Label label{++sequence, 77};
      std::vector<std::byte> data = pattern(bytes, bytes), got(bytes);
      Sending sending(label, data);
      Receiving receiving(label, got);
      ASSERT_EQ(exchange(rank.to(0), sending.message, rank.to(0), receiving), Status());
      ASSERT_TRUE(got == data) << bytes << " bytes";
    }
  }
}

TEST_P(TransportTest, EverySizeArrives) {
  for (const uint32_t n : alone() ? std::vector<uint32_t>{1} : std::vector<uint32_t>{2, 3, 8}) {
    Fleet fleet(transport(), n);
    const std::vector<size_t> lengths = sizes(n <= 3 ? 512 * kKiB : 64 * kKiB);
    fleet.run([&](Rank& rank) { exchange_all(rank, lengths); });
  }
}

TEST_P(TransportTest, TenMegabytesArrive) {
  Fleet fleet(transport(), ranks());
  const size_t lengths[] = {10 * kMiB + 3};
  fleet.run([&](Rank& rank) { exchange_all(rank, lengths); });
}

TEST_P(TransportTest, EverySizeArrivesBetweenProcesses) {
  const std::vector<size_t> lengths = sizes(64 * kKiB);
  for (const uint32_t n : alone() ? std::vector<uint32_t>{1} : std::vector<uint32_t>{2, 4}) {
    Processes processes(transport(), n, Config{},
                        [&](Rank& rank, Processes&) { exchange_all(rank, lengths); });
    EXPECT_TRUE(processes.succeeded());
  }
}

// The buffer of a pair at odd sizes, down to the smallest.
TEST_P(TransportTest, OddBuffersAreRounded) {
  for (const uint64_t ring_bytes : {1u, 12'345u, 1'000'000u}) {
    Config config;
    config.ring_bytes = ring_bytes;
    config.socket_buffer_bytes = std::max<uint64_t>(ring_bytes, 4096);
    Fleet fleet(transport(), ranks(), config);
    const std::vector<size_t> lengths = sizes(16 * kKiB);
    fleet.run([&](Rank& rank) { exchange_all(rank, lengths); });
  }
}

// Cuts bytes into segments of random lengths, empty ones among them.
std::vector<Segment> cut(std::span<std::byte> bytes, std::mt19937& random) {
  std::vector<Segment> parts;
  while (!bytes.empty()) {
    const size_t most = random() % 4 == 0 ? 70'000 : 200;
    const size_t part = std::min<size_t>(random() % most, bytes.size());
    parts.push_back({bytes.data(), part});
    bytes = bytes.subspan(part);
  }
  parts.push_back({nullptr, 0});
  return parts;
}

TEST_P(TransportTest, SegmentsNeedNotMatch) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Fleet fleet(transport(), ranks());
  fleet.run([&](Rank& rank) {
    std::mt19937 random(seed + rank.rank());
    const uint32_t peer = rank.ranks() - 1 - rank.rank();
    for (uint32_t i = 1; i <= 40; i++) {
      const size_t bytes = std::mt19937(seed + i)() % 300'000;
      std::vector<std::byte> data = pattern(bytes, i), got(bytes);
      Sending sending({i, 5}, cut(data, random));
      Receiving receiving({i, 5}, cut(got, random));
      ASSERT_EQ(exchange(rank.to(peer), sending.message, rank.to(peer), receiving), Status());
      ASSERT_TRUE(got == data) << bytes << " bytes, message " << i;
    }
  });
}

// Views are whole elements, wherever the segments are cut; they may be given back in parts.
TEST_P(TransportTest, ViewsHoldWholeElements) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Fleet fleet(transport(), ranks());
  std::vector<std::byte> data = pattern(200'008, 3), got;
  const auto send = [&](Rank& rank) {
    std::vector<Segment> parts;
    std::mt19937 random(seed);
    for (size_t at = 0; at < data.size();) {
      const size_t part = std::min<size_t>(8 * (random() % 40), data.size() - at);
      parts.push_back({data.data() + at, part});
      at += part;
    }
    Sending sending({1, 1}, parts);
    Incoming incoming{.label = {1, 1}, .bytes = data.size()};
    const bool both = alone();
    const Deadline deadline = soon();
    while ((!sending.message.complete || (both && !incoming.complete())) && !deadline.passed()) {
      ASSERT_TRUE(rank.to(other()).send(sending.message).ok());
      if (!both) continue;
      View view;
      ASSERT_TRUE(rank.to(0).peek(incoming, view).ok());
      got.insert(got.end(), view.data, view.data + view.bytes);
      if (view.bytes != 0) rank.to(0).release(incoming, view.bytes);
    }
  };
  const auto receive = [&](Rank& rank) {
    std::mt19937 random(seed + 1);
    Incoming incoming{.label = {1, 1}, .bytes = data.size()};
    const Deadline deadline = soon();
    while (!incoming.complete() && !deadline.passed()) {
      View view;
      ASSERT_TRUE(rank.to(0).peek(incoming, view).ok());
      if (view.bytes == 0) continue;
      const size_t left = data.size() - incoming.done;
      ASSERT_LE(view.bytes, left);
      ASSERT_GE(view.bytes, std::min<size_t>(64, left));
      ASSERT_EQ(view.bytes % 8, 0u);
      const size_t part = random() % 2 == 0 ? view.bytes : std::min<size_t>(64, view.bytes);
      got.insert(got.end(), view.data, view.data + part);
      rank.to(0).release(incoming, part);
    }
  };
  fleet.run([&](Rank& rank) { rank.rank() == 0 ? send(rank) : receive(rank); });
  EXPECT_TRUE(got == data);
}

// Both ranks send many messages before they look at what comes.
TEST_P(TransportTest, ManyInFlightBothWays) {
  if (alone()) return;  // one at a time, by contract
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Fleet fleet(transport(), 2);
  constexpr uint32_t kMessages = 300;
  fleet.run([&](Rank& rank) {
    const auto length = [&](uint32_t i) { return std::mt19937(seed + i)() % 3'000; };
    uint32_t sent = 0, received = 0;
    std::vector<std::byte> out, got;
    std::unique_ptr<Sending> sending;
    std::unique_ptr<Receiving> receiving;
    const Deadline deadline = soon();
    while ((sent < kMessages || received < kMessages) && !deadline.passed()) {
      if (sent < kMessages) {
        if (!sending) {
          out = pattern(length(sent), sent + rank.rank());
          sending = std::make_unique<Sending>(Label{sent, 9}, out);
        }
        ASSERT_TRUE(rank.to(1 - rank.rank()).send(sending->message).ok());
        if (sending->message.complete) {
          sending.reset();
          sent++;
          continue;  // as many as go
        }
      }
      if (received < kMessages) {
        if (!receiving) {
          got.assign(length(received), std::byte{});
          receiving = std::make_unique<Receiving>(Label{received, 9}, got);
        }
        ASSERT_TRUE(rank.to(1 - rank.rank()).receive(receiving->message, receiving->segments).ok());
        if (!receiving->message.complete()) {
          std::this_thread::yield();
          continue;
        }
        ASSERT_TRUE(got == pattern(got.size(), received + 1 - rank.rank())) << received;
        receiving.reset();
        received++;
      }
    }
    EXPECT_EQ(sent, kMessages);
    EXPECT_EQ(received, kMessages);
  });
}

// Sends until nothing moves any more.
void fill(Channel& channel, std::deque<std::unique_ptr<Sending>>& sent,
          std::vector<std::byte>& data) {
  for (uint32_t i = 0; i < 1'000; i++) {
    sent.push_back(std::make_unique<Sending>(Label{i, 1}, data));
    Outgoing& message = sent.back()->message;
    int idle = 0;
    while (!message.complete && idle < 200) {
      const size_t before = message.done;
      ASSERT_TRUE(channel.send(message).ok());
      idle = message.done == before ? idle + 1 : 0;
      if (idle != 0) std::this_thread::yield();
    }
    if (!message.complete) return;
  }
}

TEST_P(TransportTest, SlotsAreIndependent) {
  Fleet fleet(transport(), ranks());
  std::vector<std::byte> bulk = pattern(4 * kMiB, 1);
  std::deque<std::unique_ptr<Sending>> sent;
  fill(fleet[0].to(other(), 0), sent, bulk);
  ASSERT_FALSE(sent.back()->message.complete) << "slot 0 never filled up";
  for (uint32_t slot = 1; slot < kMaxSlots; slot++) {
    std::vector<std::byte> data = pattern(3'000, slot), got(3'000);
    Sending sending({1, slot}, data);
    Receiving receiving({1, slot}, got);
    ASSERT_EQ(exchange(fleet[0].to(other(), slot), sending.message, fleet[other()].to(0, slot),
                       receiving),
              Status())
        << "slot " << slot;
    EXPECT_TRUE(got == data);
  }
  std::vector<std::byte> got(bulk.size());  // and slot 0 has lost nothing
  for (uint32_t i = 0; i < sent.size(); i++) {
    Receiving receiving({i, 1}, got);
    ASSERT_EQ(exchange(fleet[0].to(other()), sent[i]->message, fleet[other()].to(0), receiving),
              Status());
    ASSERT_TRUE(got == bulk);
  }
}

TEST_P(TransportTest, DifferencesAreRefused) {
  struct Case {
    Label label;
    size_t bytes;
  };
  for (const Case& expected : {Case{{1, 8}, 100}, Case{{2, 7}, 100}, Case{{1, 7}, 101},
                               Case{{1, 7}, 0}, Case{{1, 7}, 90'000}}) {
    Fleet fleet(transport(), ranks());
    std::vector<std::byte> data(100), got(expected.bytes);
    Sending sending({1, 7}, data);
    Receiving receiving(expected.label, got);
    EXPECT_EQ(exchange(fleet[0].to(other()), sending.message, fleet[other()].to(0), receiving),
              Status(Code::invalid_usage));
    if (ranks() == 1) continue;  // both sides are ours
    const std::string error = fleet[other()].endpoint().last_error(0);
    EXPECT_NE(error.find("100 bytes"), std::string::npos) << error;
  }
}

// Memory that ends where a page begins that must not be touched.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes), mapped_(round_up(bytes, 4096) + 4096) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + mapped_ - 4096, 4096, PROT_NONE);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, mapped_); }
  std::span<std::byte> span() { return {base_ + mapped_ - 4096 - bytes_, bytes_}; }

 private:
  size_t bytes_, mapped_;
  std::byte* base_;
};

TEST_P(TransportTest, NothingBeyondTheBuffersIsTouched) {
  Fleet fleet(transport(), ranks());
  fleet.run([&](Rank& rank) {
    const uint32_t peer = rank.ranks() - 1 - rank.rank();
    uint32_t sequence = 0;
    for (const size_t bytes : {1u, 3u, 17u, 40u, 41u, 63u, 100u, 4'095u, 4'097u, 70'001u}) {
      Guarded out(bytes), in(bytes);
      const std::vector<std::byte> data = pattern(bytes, bytes);
      std::copy(data.begin(), data.end(), out.span().begin());
      Sending sending({++sequence, 1}, out.span());
      Receiving receiving({sequence, 1}, in.span());
      ASSERT_EQ(exchange(rank.to(peer), sending.message, rank.to(peer), receiving), Status());
      ASSERT_TRUE(std::equal(data.begin(), data.end(), in.span().begin())) << bytes;
    }
  });
}

// Waits as the engine does when it has nothing left to do: false when nobody woke it.
bool sleep_once(Endpoint& endpoint) {
  std::vector<pollfd> descriptors;
  int cap_ms = 20'000;
  bool woken = true;
  if (endpoint.prepare_sleep(descriptors, cap_ms)) {
    const int ready = ::poll(descriptors.data(), descriptors.size(), cap_ms);
    woken = ready != 0 || cap_ms < 20'000;  // a lowered cap promises less
  }
  endpoint.after_sleep();
  return woken;
}

// A rank that sleeps whenever nothing moves is woken for every message, large ones too.
TEST_P(TransportTest, NoWakeUpIsLost) {
  if (alone()) return;  // it never waits for anybody
  for (const size_t bytes : {size_t{4}, size_t{300'000}}) {
    const uint32_t rounds = bytes < 100 ? 10'000 : 100;
    Fleet fleet(transport(), 2);
    fleet.run([&](Rank& rank) {
      Channel& channel = rank.to(1 - rank.rank());
      std::vector<std::byte> data(bytes), got(bytes);
      for (uint32_t round = 1; round <= rounds; round++) {
        Sending sending({round, 1}, data);
        Receiving receiving({round, 1}, got);
        bool may_send = rank.rank() == 0;  // ping, pong
        while (!sending.message.complete || !receiving.message.complete()) {
          const size_t before = sending.message.done + receiving.message.done;
          if (may_send && !sending.message.complete) {
            ASSERT_TRUE(channel.send(sending.message).ok());
          }
          if (!receiving.message.complete()) {
            ASSERT_TRUE(channel.receive(receiving.message, receiving.segments).ok());
          }
          may_send = may_send || receiving.message.complete();
          const bool moved = sending.message.done + receiving.message.done != before;
          if (moved || (sending.message.complete && receiving.message.complete())) continue;
          ASSERT_TRUE(sleep_once(rank.endpoint())) << "round " << round;
        }
      }
    });
  }
}

std::string name_of(const testing::TestParamInfo<const Transport*>& info) {
  return std::string(info.param->name());
}
INSTANTIATE_TEST_SUITE_P(All, TransportTest, testing::ValuesIn(all().begin(), all().end()),
                         name_of);

}  // namespace
}  // namespace hcomm::test
