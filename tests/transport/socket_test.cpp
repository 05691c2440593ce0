// SPDX-License-Identifier: Apache-2.0
#include "transport/socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "few_descriptors.h"
#include "storm.h"

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

UniqueFd await_accept(int listener) {
  pollfd waiting{listener, POLLIN, 0};
  for (int i = 0; i < 1000; i++) {
    ::poll(&waiting, 1, 20);
    if (UniqueFd fd = accept_on(listener)) return fd;
  }
  return UniqueFd();
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
  const Error error = failure_of([&] { connect_any({&other, 1}, Deadline::after_ms(50)); });
  expect_parts(error, {"Connection refused"});
}

TEST(Listen, the_wildcard_serves_both_families) {
  const UniqueFd listener = listen_on(SocketAddress::wildcard(0), "");
  const auto address = at_loopback(listener);
  EXPECT_TRUE(connect_any({&address, 1}, Deadline::after_ms(kLimitMs)));
  const UniqueFd accepted = await_accept(listener.get());
  EXPECT_EQ(SocketAddress::of_local_end(accepted.get()).text(), address.text());
}

TEST(Listen, RDV_13_a_range_too_small_says_what_is_needed) {
  // Two neighbouring free ports, held by this test until the range is used up.
  UniqueFd low, high;
  while (!high) {
    low = listen_on(SocketAddress::loopback(0), "");
    SocketAddress next = at_loopback(low);
    next.set_port(static_cast<uint16_t>(next.port() + 1));
    try {
      high = listen_on(next, "");
    } catch (const Error&) {
    }
  }
  const std::string range = fmt::format("{}-{}", port_of(low.get()), port_of(high.get()));
  high.reset();
  high = listen_on(SocketAddress::loopback(0), range);
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
        failure_of([&] { listen_on(SocketAddress::loopback(0), "20000-20010"); }), failure_of([&] {
          connect_any({&address, 1}, Deadline::after_ms(kLimitMs));
        })}) {
    EXPECT_EQ(error.code(), Code::system);
    expect_parts(error, {"EMFILE", "64 descriptors"});
  }
}

TEST(Connect, RDV_11_a_late_server_is_waited_for) {
  UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  listener.reset();
  std::atomic<bool> joined{false};
  std::thread client([&] {
    joined = bool(connect_any({&address, 1}, Deadline::after_ms(kLimitMs)));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the lateness under test
  listener = listen_on(address, "");
  client.join();
  EXPECT_TRUE(joined);
}

TEST(Connect, RDV_11_a_full_backlog_is_waited_for) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto address = at_loopback(listener);
  std::vector<UniqueFd> queue;  // until the kernel drops what comes
  do {
    queue.push_back(start_connect(address));
  } while (finish_connect(queue.back().get()) == 0 && queue.size() < 100);
  const Error error = failure_of([&] { connect_any({&address, 1}, Deadline::after_ms(100)); });
  EXPECT_EQ(error.code(), Code::timeout);
  expect_parts(error, {address.text(), "no answer yet"});
  queue.clear();
  std::thread server([&] {
    for (;;) {  // those that were given up, then the one that counts
      const UniqueFd fd = await_accept(listener.get());
      char byte = 0;
      pollfd waiting{fd.get(), POLLIN, 0};
      ::poll(&waiting, 1, 5000);
      if (::recv(fd.get(), &byte, 1, 0) == 1) return;
    }
  });
  const UniqueFd fd = connect_any({&address, 1}, Deadline::after_ms(kLimitMs));
  write_all(fd.get(), "x", Deadline::after_ms(kLimitMs), "test");
  server.join();
}

TEST(Connect, NET_07_an_unreachable_address_does_not_hold_up_the_next) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const SocketAddress addresses[] = {SocketAddress::numeric("::2", port_of(listener.get())),
                                     at_loopback(listener)};
  const int64_t begin_ns = now_ns();
  const UniqueFd fd = connect_any(addresses, Deadline::after_ms(kLimitMs));
  EXPECT_EQ(SocketAddress::of_remote_end(fd.get()).text(), addresses[1].text());
  EXPECT_LT(now_ns() - begin_ns, 5'000'000'000);
}

TEST(Connect, a_timeout_lists_each_address_with_its_errno) {
  UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  listener.reset();
  const Error error = failure_of([&] { connect_any({&address, 1}, Deadline::after_ms(60)); });
  EXPECT_EQ(error.code(), Code::timeout);
  expect_parts(error, {address.text() + ": Connection refused"});
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

TEST(Bytes, all_arrive_and_the_end_is_an_error) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  UniqueFd client = connect_any({&address, 1}, Deadline::after_ms(kLimitMs));
  const UniqueFd server = await_accept(listener.get());
  const std::string sent(8 << 20, 'q');
  std::thread writer([&] {
    write_all(client.get(), sent, Deadline::after_ms(kLimitMs), "write");
    client.reset();
  });
  EXPECT_TRUE(read_all(server.get(), sent.size(), Deadline::after_ms(kLimitMs), "read") == sent);
  writer.join();
  const Error error =
      failure_of([&] { read_all(server.get(), 4, Deadline::after_ms(kLimitMs), "read hello"); });
  EXPECT_EQ(error.code(), Code::peer_failed);
  expect_parts(error, {"read hello", "0 of 4"});
}

TEST(Bytes, a_deadline_ends_a_read) {
  const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
  const auto address = at_loopback(listener);
  const UniqueFd client = connect_any({&address, 1}, Deadline::after_ms(kLimitMs));
  const Error error =
      failure_of([&] { read_all(client.get(), 1, Deadline::after_ms(30), "read"); });
  EXPECT_EQ(error.code(), Code::timeout);
}

TEST(Signals, SIG_07_a_storm_of_signals_fails_nothing) {
  const test::SignalStorm storm;
  for (int round = 0; round < 50; round++) {
    const UniqueFd listener = listen_on(SocketAddress::loopback(0), "");
    const auto address = at_loopback(listener);
    const UniqueFd client = connect_any({&address, 1}, Deadline::after_ms(kLimitMs));
    const UniqueFd server = await_accept(listener.get());
    ASSERT_TRUE(server);
    std::thread writer([&] {
      write_all(client.get(), std::string(100'000, 'x'), Deadline::after_ms(kLimitMs), "write");
    });
    EXPECT_EQ(read_all(server.get(), 100'000, Deadline::after_ms(kLimitMs), "read").size(),
              100'000U);
    writer.join();
  }
}

}  // namespace

}  // namespace hcomm::transport
