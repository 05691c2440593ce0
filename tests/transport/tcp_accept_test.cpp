// SPDX-License-Identifier: Apache-2.0
// The listening side against clients that are not ours.
#include "transport/tcp_accept.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/error.h"
#include "connect.h"
#include "few_descriptors.h"
#include "pair.h"
#include "transport/dial.h"
#include "transport/socket.h"

namespace hcomm::test {

namespace {

using transport::Dial;
using transport::Hello;
using transport::SocketAddress;
using transport::TcpAcceptor;

// Rank 1 of 2 listens.
class Acceptor : public testing::Test {
 protected:
  Acceptor() {
    UniqueFd listener = transport::listen_on(SocketAddress::loopback(0), "");
    address_ = SocketAddress::loopback(transport::port_of(listener.get()));
    acceptor_ = std::make_unique<TcpAcceptor>(std::move(listener), job_.place(1));
  }

  UniqueFd stranger(std::string_view says) {
    UniqueFd fd = connect_to(address_);
    say(fd.get(), says);
    return fd;
  }

  static size_t open_descriptors() {
    size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
      count++;
    return count;
  }

  Hello hello() {
    const transport::Place place = job_.place(0);
    Hello hello;
    hello.to = 1;
    hello.slot = 3;
    hello.communicator = place.communicator;
    hello.token[0] = place.token[0];
    hello.token[1] = place.token[1];
    return hello;
  }

  // The other side has closed the connection.
  static bool closed(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    char byte = 0;
    return ::poll(&waiting, 1, kLimitMs) == 1 && ::recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
  }

  UniqueFd take(uint32_t from, uint32_t slot) {
    const Deadline deadline = Deadline::after_ms(kLimitMs);
    for (;;) {
      if (UniqueFd fd = acceptor_->take(from, slot); fd || deadline.passed()) return fd;
      pollfd waiting{acceptor_->doorbell(), POLLIN, 0};
      ::poll(&waiting, 1, 100);
      acceptor_->quiet();
    }
  }

  void expect_valid_peer_is_served() {
    Dial peer({address_}, std::string(hello().bytes()), 0);
    const UniqueFd fd = drive(peer);
    ASSERT_TRUE(fd) << peer.text();
    EXPECT_EQ(SocketAddress::of_remote_end(take(0, 3).get()),
              SocketAddress::of_local_end(fd.get()));
  }

  Job job_{2};
  SocketAddress address_;
  std::unique_ptr<TcpAcceptor> acceptor_;
};

TEST_F(Acceptor, RDV_09_strays_that_stay_connected_do_not_hold_up_a_peer) {
  std::mt19937 random(20260131);
  std::vector<UniqueFd> strays;
  for (const size_t bytes : {size_t{8}, size_t{64}, size_t{4096}}) {
    std::string noise(bytes, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    strays.push_back(stranger(noise));
  }
  strays.push_back(stranger("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  strays.push_back(stranger("\xff"));  // a hello may begin so
  strays.push_back(stranger(""));
  expect_valid_peer_is_served();
  for (size_t i = 0; i < 4; i++) EXPECT_TRUE(closed(strays[i].get())) << i;
}

TEST_F(Acceptor, RDV_09_silent_strangers_are_few_and_leave_after_two_seconds) {
  std::vector<UniqueFd> silent;
  const size_t most = open_descriptors() + 64 + 1;  // one that is being let in
  for (int i = 0; i < 200; i++) {
    silent.push_back(stranger(""));
    EXPECT_LE(open_descriptors(), most + silent.size());
  }
  expect_valid_peer_is_served();
  EXPECT_LE(open_descriptors(), most + silent.size());
  for (const UniqueFd& fd : silent) EXPECT_TRUE(closed(fd.get()));
}

TEST_F(Acceptor, every_wrong_field_is_refused) {
  const auto refused = [&](auto change) {
    Hello wrong = hello();
    change(wrong);
    const UniqueFd fd = stranger(wrong.bytes());
    return closed(fd.get());
  };
  EXPECT_TRUE(refused([](Hello& h) { h.magic++; }));
  EXPECT_TRUE(refused([](Hello& h) { h.version++; }));
  EXPECT_TRUE(refused([](Hello& h) { h.token[0] ^= 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.token[1] ^= uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Hello& h) { h.communicator++; }));
  EXPECT_TRUE(refused([](Hello& h) { h.to = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.from = 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.slot = transport::kMaxSlots; }));
  expect_valid_peer_is_served();
}

TEST_F(Acceptor, a_hello_may_come_byte_by_byte) {
  const UniqueFd fd = connect_to(address_);
  const Hello whole = hello();
  for (const char c : whole.bytes())
    say(fd.get(), {&c, 1});
  EXPECT_EQ(hear(fd.get(), 1), "A");
  EXPECT_FALSE(acceptor_->take(0, 3)) << "not committed yet";
  say(fd.get(), "C");
  EXPECT_TRUE(take(0, 3));
}

TEST_F(Acceptor, a_dial_that_is_given_up_before_it_commits_never_arrives) {
  {
    const UniqueFd fd = stranger(hello().bytes());
    EXPECT_EQ(hear(fd.get(), 1), "A");
  }
  expect_valid_peer_is_served();
  EXPECT_FALSE(acceptor_->take(0, 3));
}

TEST_F(Acceptor, RDV_15_no_descriptor_left_is_told_with_the_limit_and_mends) {
  {
    const FewDescriptors few(0);
    // Exactly the descriptor for the client, and none to accept it with.
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit one_more{limit.rlim_cur + 1, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &one_more);
    const UniqueFd client = transport::start_connect(address_);
    ASSERT_TRUE(client);
    setrlimit(RLIMIT_NOFILE, &limit);
    const Deadline deadline = Deadline::after_ms(kLimitMs);
    while (acceptor_->error().empty() && !deadline.passed()) {
      pollfd waiting{acceptor_->doorbell(), POLLIN, 0};
      ::poll(&waiting, 1, 100);
      acceptor_->quiet();
    }
    EXPECT_NE(acceptor_->error().find("EMFILE"), std::string::npos) << acceptor_->error();
    EXPECT_NE(acceptor_->error().find("64 descriptors"), std::string::npos) << acceptor_->error();
  }
  expect_valid_peer_is_served();
  EXPECT_EQ(acceptor_->error(), "");
}

}  // namespace

}  // namespace hcomm::test
