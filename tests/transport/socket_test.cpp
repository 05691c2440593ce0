// SPDX-License-Identifier: Apache-2.0
#include "transport/socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "base/error.h"
#include "connect.h"
#include "few_descriptors.h"
#include "storm.h"
#include "support/held_port.h"

namespace hcomm::transport {

namespace {

constexpr int64_t kLimitMs = 20'000;

template <typename Call>
Error failure_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {Code::ok, "nothing was thrown"};
}

void expect_parts(const Error& error, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    EXPECT_NE(error.text().find(part), std::string::npos) << error.text() << "\n lacks " << part;
}

constexpr const char kGreeting[] = "a greeting";

Dial dial_to(std::vector<SocketAddress> addresses) {
  return {std::move(addresses), kGreeting, 0};
}

SocketAddress at_loopback(const UniqueFd& listener) {
  return SocketAddress::loopback(port_of(listener.get()));
}

TEST(Listen, any_port_and_a_taken_one) {
  const UniqueFd first = listen_on(SocketAddress::loopback(0), "");
  const SocketAddress address = at_loopback(first);
  EXPECT_NE(address.port(), 0);
  const Error error = failure_of([&] { listen_on(address, ""); });
  EXPECT_EQ(error.code(), Code::system);
  expect_parts(error, {address.text(), "Address already in use"});
}

TEST(Listen, NET_09_a_loopback_listener_serves_that_address_only) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto other = SocketAddress::numeric("127.0.0.2", port_of(listener.get()));
  EXPECT_FALSE(test::connect_to(other));
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST(Listen, the_wildcard_serves_both_families) {
  const UniqueFd listener = listen_on(SocketAddress::wildcard(0), "");
  const auto address = at_loopback(listener);
  EXPECT_TRUE(test::connect_to(address));
  const UniqueFd accepted = test::await_accept(listener.get());
  EXPECT_EQ(SocketAddress::of_local_end(accepted.get()).text(), address.text());
}

TEST(Listen, RDV_13_a_range_too_small_says_what_is_needed) {
  const test::HeldPair ports;
  const std::string range = ports.range();
  const UniqueFd low = listen_on(SocketAddress::loopback(0), range);
  const UniqueFd high = listen_on(SocketAddress::loopback(0), range);
  EXPECT_EQ(port_of(low.get()), ports.low());
  const Error error = failure_of([&] { listen_on(SocketAddress::loopback(0), range); });
  EXPECT_EQ(error.code(), Code::system);
  expect_parts(error, {"HCOMM_PORT_RANGE=" + range, "0 of 2", "1 port needed"});
}

TEST(Listen, a_range_that_is_none_is_quoted) {
  for (const char* range : {"x", "1-", "0-5", "9-8", "1-70000", "1-2-3", "-"}) {
    const Error error = failure_of([&] { listen_on(SocketAddress::loopback(0), range); });
    EXPECT_EQ(error.code(), Code::invalid_argument) << range;
    expect_parts(error, {fmt::format("HCOMM_PORT_RANGE='{}'", range)});
  }
}

TEST(Listen, RDV_15_no_descriptor_left_says_so_with_the_limit) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  const test::FewDescriptors few(0);
  for (const Error& error :
       {failure_of([&] { listen_on(SocketAddress::loopback(0), ""); }),
        failure_of([&] { listen_on(SocketAddress::loopback(0), "20000-20010"); })}) {
    EXPECT_EQ(error.code(), Code::system);
    expect_parts(error, {"EMFILE", "64 descriptors"});
  }
  Dial dial = dial_to({address});
  EXPECT_FALSE(dial.advance());
  EXPECT_EQ(dial.hopeless(), EMFILE);
  EXPECT_NE(dial.text().find("64 descriptors"), std::string::npos) << dial.text();
}

TEST(Connect, RDV_11_a_late_server_is_waited_for) {
  const test::HeldPort held;
  const auto address = SocketAddress::loopback(held.port());
  Dial dial = dial_to({address});
  EXPECT_FALSE(test::drive(dial, Deadline::after_ms(300)));  // the lateness under test
  EXPECT_TRUE(dial.refused());
  EXPECT_EQ(dial.text(), address.text() + ": Connection refused");
  const UniqueFd listener = listen_on(address, "");
  std::thread server([&] { EXPECT_TRUE(test::serve(listener.get(), kGreeting)); });
  EXPECT_TRUE(test::drive(dial));
  server.join();
}

TEST(Connect, RDV_11_a_full_backlog_is_waited_for) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto address = at_loopback(listener);
  std::vector<UniqueFd> queue;  // until the kernel drops what comes
  do {
    queue.push_back(start_connect(address));
  } while (finish_connect(queue.back().get()) == 0 && queue.size() < 100);
  Dial dial = dial_to({address});
  EXPECT_FALSE(test::drive(dial, Deadline::after_ms(100)));
  EXPECT_EQ(dial.text(), address.text() + ": no answer yet");
  queue.clear();
  std::thread server([&] { EXPECT_TRUE(test::serve(listener.get(), kGreeting)); });
  EXPECT_TRUE(test::drive(dial));
  server.join();
}

TEST(Connect, NET_07_an_unreachable_address_does_not_hold_up_the_next) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  Dial dial = dial_to({SocketAddress::numeric("::2", address.port()), address});
  const int64_t begin_ns = now_ns();
  std::thread server([&] { EXPECT_TRUE(test::serve(listener.get(), kGreeting)); });
  const UniqueFd fd = test::drive(dial);
  server.join();
  EXPECT_EQ(SocketAddress::of_remote_end(fd.get()).text(), address.text());
  EXPECT_LT(now_ns() - begin_ns, 5'000'000'000);
}

TEST(Connect, a_socket_never_counts_as_joined_to_itself) {
  // Simultaneous open: a bound socket that connects to its own address succeeds.
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = SocketAddress::loopback(0);
  ASSERT_EQ(::bind(fd.get(), any.get(), any.bytes()), 0);
  const auto own = SocketAddress::of_local_end(fd.get());
  ASSERT_EQ(::connect(fd.get(), own.get(), own.bytes()), 0);
  EXPECT_EQ(finish_connect(fd.get()), ECONNREFUSED);
}

TEST(Signals, SIG_07_a_storm_of_signals_fails_nothing) {
  const test::SignalStorm storm;
  for (int round = 0; round < 50; round++) {
    const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
    Dial dial = dial_to({at_loopback(listener)});
    std::thread server([&] { EXPECT_TRUE(test::serve(listener.get(), kGreeting)); });
    EXPECT_TRUE(test::drive(dial));
    server.join();
  }
}

}  // namespace

}  // namespace hcomm::transport
