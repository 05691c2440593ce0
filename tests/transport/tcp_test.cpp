// SPDX-License-Identifier: Apache-2.0
// What is TCP's own; what every transport owes is in conformance/transport_test.
#include <dirent.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/error.h"
#include "connect.h"
#include "few_descriptors.h"
#include "pair.h"
#include "storm.h"
#include "transport/socket.h"

namespace hcomm::test {

namespace {

using transport::Channel;
using transport::Incoming;
using transport::Label;
using transport::Outgoing;
using transport::Segment;
using transport::SocketAddress;
using transport::View;

const transport::Transport& tcp() {
  return *transport::find("tcp");
}

std::vector<std::byte> pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  std::mt19937 random(seed);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  return data;
}

size_t open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  size_t count = 0;
  while (readdir(folder) != nullptr) count++;
  closedir(folder);
  return count;
}

// Where an endpoint listens, read from its address: 12 bytes of head, then 32 for each address.
SocketAddress listens_at(const transport::Endpoint& endpoint) {
  const std::string address = endpoint.address();
  return SocketAddress::unpack(reinterpret_cast<const unsigned char*>(address.data()) + 12);
}

class Tcp : public testing::Test {
 protected:
  Channel& channel(uint32_t own, uint32_t peer, uint32_t slot = 0) {
    return job_.endpoints[own]->channel(peer, slot);
  }

  // One empty message each way joins the pair.
  void join() {
    std::thread peer([&] { swap(1); });
    swap(0);
    peer.join();
  }
  void swap(uint32_t own) {
    Outgoing out = outgoing({0, 0}, {});
    Incoming in = incoming({0, 0}, 0);
    EXPECT_TRUE(send_all(*job_.endpoints[own], channel(own, 1 - own), out).ok());
    EXPECT_TRUE(receive_all(*job_.endpoints[own], channel(own, 1 - own), in, {}).ok());
  }

  Job job_{2};
};

const size_t kSizes[] = {
    0,    1,    3,     4,     31,    32, 33,     63,      64, 65,      1000,          4096, 8191,
    8192, 8193, 65535, 65536, 65537, 1,  262144, 300'000, 5,  1 << 20, (4 << 20) + 3, 0,    7};

enum class Take : uint8_t { in_place, by_peek };

// Sizes in this order and then shuffled; the receiver takes each in place, or peeks at it.
void carry(Job& job, Take take, uint32_t seed) {
  std::vector<size_t> sizes(std::begin(kSizes), std::end(kSizes));
  std::mt19937 random(seed);
  for (int i = 0; i < 200; i++) sizes.push_back(random() % 200);
  std::shuffle(sizes.begin() + std::size(kSizes), sizes.end(), random);
  std::thread sender([&] {
    for (uint32_t i = 0; i < sizes.size(); i++) {
      std::vector<std::byte> data = pattern(sizes[i], i);
      const Segment segment{data.data(), data.size()};
      Outgoing out = outgoing({i, 9}, segment);
      ASSERT_TRUE(send_all(*job.endpoints[0], job.endpoints[0]->channel(1, 2), out).ok());
    }
  });
  for (uint32_t i = 0; i < sizes.size(); i++) {
    std::vector<std::byte> data(sizes[i]);
    const Segment segment{data.data(), data.size()};
    Incoming in = incoming({i, 9}, sizes[i]);
    Channel& channel = job.endpoints[1]->channel(0, 2);
    const Status status =
        take == Take::by_peek
            ? peek_all(*job.endpoints[1], channel, in, data.data(), 1 + random() % 100'000)
            : receive_all(*job.endpoints[1], channel, in, {&segment, 1});
    ASSERT_TRUE(status.ok()) << job.endpoints[1]->last_error(0);
    ASSERT_TRUE(data == pattern(sizes[i], i)) << "message " << i << " of " << sizes[i];
  }
  sender.join();
}

TEST_F(Tcp, carries_every_size_in_place) {
  job_.open(tcp());
  carry(job_, Take::in_place, 1);
}

TEST_F(Tcp, carries_every_size_by_peek) {
  job_.open(tcp());
  carry(job_, Take::by_peek, 2);
}

TEST_F(Tcp, small_buffers_of_the_kernel_only_slow_it_down) {
  job_.config.socket_buffer_bytes = 4096;
  job_.open(tcp());
  carry(job_, Take::in_place, 3);
}

TEST_F(Tcp, SIG_07_a_storm_of_signals_fails_nothing) {
  const SignalStorm storm;
  job_.open(tcp());
  carry(job_, Take::by_peek, 4);
}

TEST_F(Tcp, a_payload_is_seen_at_a_multiple_of_64) {
  job_.open(tcp());
  join();
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{100}, size_t{5000}}) {
    std::vector<std::byte> data = pattern(bytes, 1);
    const Segment segment{data.data(), bytes};
    Outgoing out = outgoing({1, 1}, segment);
    ASSERT_TRUE(send_all(*job_.endpoints[0], channel(0, 1), out).ok());
    Incoming in = incoming({1, 1}, bytes);
    View view;
    ASSERT_TRUE(drive(*job_.endpoints[1], [&](Went& went) {
                  const Status status = channel(1, 0).peek(in, view);
                  if (view.bytes > 0) went = Went::through;
                  return status;
                }).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0U) << bytes;
    ASSERT_TRUE(receive_all(*job_.endpoints[1], channel(1, 0), in, {&segment, 1}).ok());
  }
}

TEST_F(Tcp, many_segments_on_both_sides) {
  job_.open(tcp());
  constexpr size_t kBytes = 300'000;
  std::vector<std::byte> from = pattern(kBytes, 5), to(kBytes);
  const auto cut = [](std::vector<std::byte>& data, uint32_t seed) {
    std::vector<Segment> segments;
    std::mt19937 random(seed);
    for (size_t at = 0; at < data.size();) {
      const size_t bytes = std::min<size_t>(random() % 3000, data.size() - at);  // some are empty
      segments.push_back({data.data() + at, bytes});
      at += bytes;
    }
    return segments;
  };
  const std::vector<Segment> out_segments = cut(from, 6), in_segments = cut(to, 7);
  std::thread sender([&] {
    Outgoing out;
    out.label = {1, 1};
    out.segments = out_segments.data();
    out.segment_count = static_cast<uint32_t>(out_segments.size());
    out.bytes = kBytes;
    EXPECT_TRUE(send_all(*job_.endpoints[0], channel(0, 1), out).ok());
  });
  Incoming in = incoming({1, 1}, kBytes);
  EXPECT_TRUE(receive_all(*job_.endpoints[1], channel(1, 0), in, in_segments).ok());
  sender.join();
  EXPECT_TRUE(from == to);
}

TEST_F(Tcp, another_operation_is_invalid_usage_and_names_both) {
  job_.open(tcp());
  join();
  std::vector<std::byte> data(16);
  const Segment segment{data.data(), data.size()};
  Outgoing out = outgoing({5, 0xabcd}, segment);
  ASSERT_TRUE(send_all(*job_.endpoints[1], channel(1, 0), out).ok());
  for (const auto& [label, bytes] :
       {std::pair{Label{5, 0xabcd}, size_t{8}}, std::pair{Label{5, 0xabce}, size_t{16}},
        std::pair{Label{6, 0xabcd}, size_t{16}}}) {
    Incoming in = incoming(label, bytes);
    const Status status = receive_all(*job_.endpoints[0], channel(0, 1), in, {&segment, 1});
    EXPECT_EQ(status.code(), Code::invalid_usage);
  }
  const std::string error = job_.endpoints[0]->last_error(1);
  for (const char* part : {"operation 5", "0000abcd", "16 bytes", "8 bytes"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST_F(Tcp, a_peer_that_goes_away_is_peer_failed_for_both_verbs) {
  job_.open(tcp());
  join();
  channel(0, 1);
  job_.endpoints[1].reset();
  Incoming in = incoming({1, 1}, 4);
  std::vector<std::byte> data(4);
  const Segment segment{data.data(), data.size()};
  EXPECT_EQ(receive_all(*job_.endpoints[0], channel(0, 1), in, {&segment, 1}).code(),
            Code::peer_failed);
  EXPECT_NE(job_.endpoints[0]->last_error(1).find("receive: "), std::string::npos);
  Outgoing out = outgoing({1, 1}, segment);
  EXPECT_EQ(send_all(*job_.endpoints[0], channel(0, 1), out).code(), Code::peer_failed);
}

TEST_F(Tcp, DIE_09_what_was_sent_before_the_end_is_still_received) {
  job_.open(tcp());
  join();
  std::vector<std::byte> data = pattern(100'000, 8), got(100'000);
  const Segment from{data.data(), data.size()}, to{got.data(), got.size()};
  Outgoing out = outgoing({1, 1}, from);
  ASSERT_TRUE(send_all(*job_.endpoints[0], channel(0, 1), out).ok());
  job_.endpoints[0].reset();
  Incoming in = incoming({1, 1}, got.size());
  EXPECT_TRUE(receive_all(*job_.endpoints[1], channel(1, 0), in, {&to, 1}).ok());
  EXPECT_TRUE(data == got);
}

TEST_F(Tcp, a_full_channel_does_not_hold_up_another) {
  job_.config.socket_buffer_bytes = 64 << 10;
  job_.open(tcp());
  join();
  std::vector<std::byte> data = pattern(8 << 20, 9), got(data.size());
  const Segment large{data.data(), data.size()}, to{got.data(), got.size()};
  Outgoing blocked = outgoing({1, 1}, large);
  while (channel(0, 1).send(blocked).ok() && blocked.done == 0) {
  }
  for (int i = 0; i < 1000; i++) ASSERT_TRUE(channel(0, 1).send(blocked).ok());
  EXPECT_FALSE(blocked.complete);
  std::thread peer([&] {
    Incoming in = incoming({2, 1}, 4);
    EXPECT_TRUE(receive_all(*job_.endpoints[1], channel(1, 0, 1), in, {&to, 1}).ok());
    in = incoming({1, 1}, data.size());
    EXPECT_TRUE(receive_all(*job_.endpoints[1], channel(1, 0), in, {&to, 1}).ok());
  });
  const Segment small{data.data(), 4};
  Outgoing free = outgoing({2, 1}, small);
  EXPECT_TRUE(send_all(*job_.endpoints[0], channel(0, 1, 1), free).ok());
  EXPECT_TRUE(send_all(*job_.endpoints[0], channel(0, 1), blocked).ok());
  peer.join();
  EXPECT_TRUE(data == got);
}

TEST_F(Tcp, reach_is_everybody_else_who_has_an_address) {
  for (uint32_t rank = 0; rank < 2; rank++) job_.endpoints.push_back(tcp().open(job_.place(rank)));
  const std::string addresses[] = {job_.endpoints[0]->address(), ""};
  job_.endpoints[0]->connect(addresses, Deadline::after_ms(kLimitMs));
  job_.endpoints[1]->connect(addresses, Deadline::after_ms(kLimitMs));
  EXPECT_FALSE(job_.endpoints[0]->reach(0));
  EXPECT_FALSE(job_.endpoints[0]->reach(1));
  EXPECT_TRUE(job_.endpoints[1]->reach(0));
  const std::string nonsense[] = {"nonsense", "TCP1"};
  job_.endpoints[1]->connect(nonsense, Deadline::after_ms(kLimitMs));
  EXPECT_FALSE(job_.endpoints[1]->reach(0));
}

TEST_F(Tcp, nobody_there_is_unavailable_with_the_addresses) {
  job_.open(tcp());
  const SocketAddress gone = listens_at(*job_.endpoints[1]);
  job_.endpoints[1].reset();
  Outgoing out = outgoing({1, 1}, {});
  EXPECT_EQ(send_all(*job_.endpoints[0], channel(0, 1), out).code(), Code::unavailable);
  const std::string error = job_.endpoints[0]->last_error(1);
  for (const std::string& part : {gone.text(), std::string("HCOMM_SOCKET_IFNAME")})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST_F(Tcp, NET_01_loopback_offered_to_another_host_says_what_to_set) {
  job_.config.root = "127.0.0.1:1";
  transport::Place elsewhere = job_.place(1);
  elsewhere.host_key = "another host";
  job_.endpoints.push_back(tcp().open(job_.place(0)));
  auto peer = tcp().open(elsewhere);
  const std::string addresses[] = {job_.endpoints[0]->address(), peer->address()};
  peer.reset();
  job_.endpoints[0]->connect(addresses, Deadline::after_ms(kLimitMs));
  Outgoing out = outgoing({1, 1}, {});
  const int64_t begin_ns = now_ns();
  EXPECT_EQ(send_all(*job_.endpoints[0], channel(0, 1), out).code(), Code::unavailable);
  EXPECT_LT(now_ns() - begin_ns, 10'000'000'000);
  EXPECT_NE(job_.endpoints[0]->last_error(1).find("offers loopback only"), std::string::npos)
      << job_.endpoints[0]->last_error(1);
}

TEST_F(Tcp, NET_09_a_job_on_loopback_listens_there_only) {
  for (const auto& [root, interfaces] :
       {std::pair{"127.0.0.1:1", ""}, std::pair{"localhost:1", ""}, std::pair{"", "lo"}}) {
    job_.config.root = root;
    job_.config.interfaces = interfaces;
    const auto endpoint = tcp().open(job_.place(0));
    const SocketAddress at = listens_at(*endpoint);
    EXPECT_EQ(at, SocketAddress::loopback(at.port()));
    EXPECT_EQ(endpoint->address().size(), 12 + SocketAddress::kPacked) << "one address is offered";
    const auto other = SocketAddress::numeric("127.0.0.2", at.port());
    EXPECT_FALSE(connect_to(other));
  }
}

TEST_F(Tcp, RDV_13_a_range_too_small_fails_before_any_data_moves) {
  const UniqueFd taken = transport::listen_on(SocketAddress::wildcard(0), "");
  job_.config.port_range = std::to_string(transport::port_of(taken.get()));
  try {
    tcp().open(job_.place(1));
    FAIL();
  } catch (const Error& error) {
    for (const char* part : {"rank 1 of 2", "HCOMM_PORT_RANGE", "1 port needed", "0 of 1"})
      EXPECT_NE(error.text().find(part), std::string::npos) << error.text();
  }
}

TEST(TcpMany, RDV_07_descriptors_are_few_until_pairs_speak) {
  const size_t before = open_descriptors();
  Job job(32);
  job.open(tcp());
  EXPECT_LE(open_descriptors(), before + 3 + 4 * 32);  // the reactor's, and O(1) a rank
}

TEST_F(Tcp, RDV_15_no_descriptor_for_a_connection_is_told_with_the_limit) {
  job_.open(tcp());
  join();  // also since the sanitizer needs descriptors to look at a type for the first time
  Channel& second = channel(0, 1, 1);
  const FewDescriptors few(0);
  Outgoing out = outgoing({1, 1}, {});
  EXPECT_EQ(send_all(*job_.endpoints[0], second, out).code(), Code::system);
  const std::string error = job_.endpoints[0]->last_error(1);
  EXPECT_NE(error.find("EMFILE"), std::string::npos) << error;
  EXPECT_NE(error.find("64 descriptors"), std::string::npos) << error;
}

TEST(TcpMany, THR_03_every_pair_joins_on_first_use_from_all_sides_at_once) {
  constexpr uint32_t kRanks = 8;
  Job job(kRanks);
  job.open(tcp());
  std::vector<std::thread> ranks;
  for (uint32_t own = 0; own < kRanks; own++)
    ranks.emplace_back([&, own] {
      transport::Endpoint& endpoint = *job.endpoints[own];
      std::vector<Outgoing> out(kRanks);
      std::vector<Incoming> in(kRanks);
      std::vector<uint32_t> got(kRanks);
      uint32_t mine = own;
      const Segment from{reinterpret_cast<std::byte*>(&mine), sizeof mine};
      for (uint32_t peer = 0; peer < kRanks; peer++) {
        out[peer] = outgoing({1, 1}, from);
        in[peer] = incoming({1, 1}, sizeof mine);
      }
      const Status status = drive(endpoint, [&](Went& went) -> Status {
        bool done = true;
        for (uint32_t peer = 0; peer < kRanks; peer++) {
          if (peer == own) continue;
          const Segment to{reinterpret_cast<std::byte*>(&got[peer]), sizeof mine};
          if (const Status s = endpoint.channel(peer, 0).send(out[peer]); !s.ok()) return s;
          if (const Status s = endpoint.channel(peer, 0).receive(in[peer], {&to, 1}); !s.ok())
            return s;
          done = done && out[peer].complete && in[peer].complete();
        }
        if (done) went = Went::through;
        return {};
      });
      EXPECT_TRUE(status.ok()) << endpoint.last_error(own == 0 ? 1 : 0);
      for (uint32_t peer = 0; peer < kRanks; peer++) EXPECT_EQ(got[peer], peer == own ? 0 : peer);
    });
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace

}  // namespace hcomm::test
