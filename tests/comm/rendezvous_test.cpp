// SPDX-License-Identifier: Apache-2.0
// How ranks get in, and who does not: the faults of kind boot-rendezvous.
#include "comm/control/rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>

#include "comm/job_threads.h"
#include "support/held_port.h"

namespace hcomm::comm {
namespace {

using transport::SocketAddress;

void expect_text(const Error& error, Code code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(error.code(), code) << error.text();
  for (const char* part : parts)
    EXPECT_NE(error.text().find(part), std::string::npos) << part << " in: " << error.text();
}

UniqueFd stray(const Root& root) {
  UniqueFd fd = transport::start_connect(root.addresses[0]);
  pollfd wait{fd.get(), POLLOUT, 0};
  EXPECT_EQ(poll(&wait, 1, 10'000), 1);
  EXPECT_EQ(transport::finish_connect(fd.get()), 0);
  return fd;
}

bool closed_within(const UniqueFd& fd, int64_t ms) {
  const Deadline deadline = Deadline::after_ms(ms);
  char buffer[4096];
  while (!deadline.passed()) {
    pollfd wait{fd.get(), POLLIN, 0};
    poll(&wait, 1, static_cast<int>(deadline.left_ms()));
    const ssize_t bytes = recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (bytes == 0 || (bytes < 0 && !again(errno))) return true;
  }
  return false;
}

long resident_kib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

// RDV-03: an id of a run that has ended, with nobody or another job at its address.
TEST(Rendezvous, AnOldIdIsAClearErrorSoon) {
  Service service;
  auto hub = Hub::listen(service, loopback_config());
  const Root old = decode_id(hub->id());
  hub.reset();
  const int64_t start = now_ns();
  const Error gone = error_of([&] { (void)Control::join(service, join_of(old, 1, 2)); });
  expect_text(gone, Code::peer_failed, {"rank 0 cannot be found", "Connection refused"});
  EXPECT_EQ(gone.peer(), 0);
  EXPECT_LT(now_ns() - start, 5'000'000'000);

  hub = Hub::listen(service, loopback_config());
  Root mixed = old;  // the port has gone to another job
  mixed.addresses = hub->root().addresses;
  const Error other = error_of([&] { (void)Control::join(service, join_of(mixed, 1, 2)); });
  expect_text(other, Code::peer_failed,
              {"this is the root of job", fingerprint(hub->root().nonce).c_str(),
               fingerprint(old.nonce).c_str()});
}

// RDV-05: 3 of 4 come.
TEST(Rendezvous, AMissingRankIsNamedToAll) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  in_threads(3, [&](uint32_t thread) {
    const uint32_t rank = thread == 2 ? 3 : thread;
    const int64_t start = now_ns();
    const Error error =
        error_of([&] { (void)Control::join(service, join_of(hub->root(), rank, 4, 500)); });
    expect_text(error, Code::timeout, {"3 of 4 joined, missing: rank 2"});
    EXPECT_GE(now_ns() - start, 400'000'000);
    EXPECT_LT(now_ns() - start, 5'000'000'000);
  });
  // Who comes after that learns the same at once.
  const Error late = error_of([&] { (void)Control::join(service, join_of(hub->root(), 2, 4)); });
  expect_text(late, Code::timeout, {"3 of 4 joined", "make a new one"});
  EXPECT_TRUE(hub->over());
}

TEST(Rendezvous, ARankThatDiesWhileJoiningIsNamed) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const Hello hello{.library = 100,
                    .job = "",
                    .rank = 1,
                    .ranks = 3,
                    .pid = 4711,
                    .attempt = 1,
                    .challenge = "c",
                    .host = "there",
                    .settings = ""};
  Welcomed welcomed = knock(hub->root(), hello, Deadline::after_ms(10'000));
  std::thread waits([&] {
    const Error error = error_of([&] { (void)Control::join(service, join_of(hub->root(), 0, 3)); });
    expect_text(error, Code::peer_failed,
                {"rank 1 (host there, pid 4711) ended while ranks were joining"});
  });
  welcomed.fd.reset();
  waits.join();
}

// RDV-09: strangers with every kind of bytes, or none, that stay connected.
TEST(Rendezvous, StrangersAreDroppedAndRanksServed) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  std::mt19937 random(11);
  std::thread first(
      [&] { EXPECT_NO_THROW((void)Control::join(service, join_of(hub->root(), 0, 2))); });
  const long before_kib = resident_kib();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 150; i++) {
    strangers.push_back(stray(hub->root()));
    std::string bytes;
    const size_t sizes[] = {0, 8, 64, 4096};
    for (size_t n = sizes[i % 4]; n > 0; n--) bytes += static_cast<char>(random());
    if (i % 5 == 0) bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    if (i % 7 == 0) bytes = std::string("\x10\x00\x00\x00", 4) + bytes;  // a length that fits
    (void)send(strangers.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // they take more
  constexpr long kMost_kib = 8192;
#else
  constexpr long kMost_kib = 1024;
#endif
  EXPECT_LT(resident_kib() - before_kib, kMost_kib);
  // The other rank comes while they are all there.
  EXPECT_NO_THROW((void)Control::join(service, join_of(hub->root(), 1, 2)));
  first.join();
  for (const UniqueFd& each : strangers) EXPECT_TRUE(closed_within(each, 8000));
}

TEST(Rendezvous, AStrangerIsDroppedWithinTwoSeconds) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const UniqueFd silent = stray(hub->root());
  const int64_t start = now_ns();
  EXPECT_TRUE(closed_within(silent, 5000));
  EXPECT_LT(now_ns() - start, 2'200'000'000);
}

// RDV-11: a root that nobody listens at yet, or that accepts nobody yet.
TEST(Rendezvous, ALateRootIsWaitedFor) {
  Service service;
  const test::HeldPort held;
  const Root root{.addresses = {SocketAddress::loopback(held.port())},
                  .nonce = random_nonce(),
                  .state = Root::State::may_be_late};
  std::atomic<bool> joined = false;
  std::thread early([&] {
    EXPECT_NO_THROW((void)Control::join(service, join_of(root, 1, 2)));
    joined = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // the lateness under test
  EXPECT_FALSE(joined);
  const auto hub = Hub::listen_at(service, root, {}, Hub::Worlds::many);
  EXPECT_NO_THROW((void)Control::join(service, join_of(root, 0, 2)));
  early.join();
}

TEST(Rendezvous, ARootThatDoesNotAcceptYetIsWaitedFor) {
  Service service;
  UniqueFd listener = transport::listen_on(SocketAddress::loopback(0), "");
  const Root root{.addresses = {SocketAddress::loopback(transport::port_of(listener.get()))},
                  .nonce = random_nonce()};
  std::thread early([&] { EXPECT_NO_THROW((void)Control::join(service, join_of(root, 1, 2))); });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const auto hub = Hub::listen_at(service, root, std::move(listener), Hub::Worlds::many);
  EXPECT_NO_THROW((void)Control::join(service, join_of(root, 0, 2)));
  early.join();
}

TEST(Rendezvous, NobodyAtTheRootIsATimeoutThatNamesEachAddress) {
  Service service;
  const test::HeldPort held;
  const SocketAddress address = SocketAddress::loopback(held.port());
  const Root root{.addresses = {address}, .state = Root::State::may_be_late};
  const Error error = error_of([&] { (void)Control::join(service, join_of(root, 1, 2, 300)); });
  expect_text(error, Code::timeout, {address.text().c_str(), "Connection refused", "rank 1 of 2"});
}

// NET-07: dead and silent addresses before the right one.
TEST(Rendezvous, AllAddressesAreTried) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const UniqueFd silent = transport::listen_on(SocketAddress::loopback(0), "");
  const test::HeldPort dead;
  Root root = hub->root();
  root.addresses.insert(
      root.addresses.begin(),
      {SocketAddress::loopback(dead.port()),
       SocketAddress::loopback(transport::port_of(silent.get()))});
  const int64_t start = now_ns();
  in_threads(3, [&](uint32_t rank) {
    EXPECT_NO_THROW((void)Control::join(service, join_of(root, rank, 3)));
  });
  EXPECT_LT(now_ns() - start, 5'000'000'000);
}

// A rank that reaches the hub by two addresses has joined once.
TEST(Rendezvous, TwoWaysToOneHub) {
  Service service;
  std::vector<UniqueFd> listeners;
  listeners.push_back(transport::listen_on(SocketAddress::loopback(0), ""));
  const auto hub = Hub::listen(service, loopback_config());
  Root root = hub->root();
  root.addresses.push_back(root.addresses[0]);
  root.addresses.push_back(root.addresses[0]);
  for (int round = 0; round < 20; round++) {
    const auto each = Hub::listen(service, loopback_config());
    Root twice = each->root();
    twice.addresses.push_back(twice.addresses[0]);
    in_threads(4, [&](uint32_t rank) {
      EXPECT_NO_THROW((void)Control::join(service, join_of(twice, rank, 4)));
    });
  }
}

TEST(Rendezvous, DuplicatesAreToldAndTheOthersServed) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const Hello hello{.library = 100,
                    .rank = 1,
                    .ranks = 2,
                    .pid = 1,
                    .attempt = 1,
                    .challenge = "c",
                    .host = "first",
                    .settings = ""};
  const Welcomed welcomed = knock(hub->root(), hello, Deadline::after_ms(10'000));
  const Error error = error_of([&] { (void)Control::join(service, join_of(hub->root(), 1, 2)); });
  expect_text(error, Code::invalid_usage, {"rank 1 has joined already", "host first, pid 1"});
  EXPECT_NO_THROW((void)Control::join(service, join_of(hub->root(), 0, 2)));
}

// CFG-01: what differs is named, both values, on both sides.
TEST(Rendezvous, DisagreementsAreToldToAll) {
  struct Case {
    Join first, second;
    std::vector<const char*> names;
  };
  const Root none;
  Join plain = join_of(none, 0, 2), other = join_of(none, 1, 2);
  std::vector<Case> cases(3, {plain, other, {}});
  cases[0].second.ranks = 3;
  cases[0].names = {"2 ranks", "says 3", "rank 0", "rank 1"};
  cases[1].second.library_version = 203;
  cases[1].names = {"HCOMM 0.2.3", "0.1.0"};
  cases[2].first.settings = "HCOMM_ALGO= HCOMM_TILE=64 HCOMM_WINDOW=2";
  cases[2].second.settings = "HCOMM_ALGO= HCOMM_TILE=128 HCOMM_WINDOW=2";
  cases[2].names = {"HCOMM_TILE=64", "HCOMM_TILE=128"};
  for (Case& each : cases) {
    Service service;
    const auto hub = Hub::listen(service, loopback_config());
    in_threads(2, [&](uint32_t rank) {
      Join join = rank == 0 ? each.first : each.second;
      join.root = hub->root();
      const Error error = error_of([&] { (void)Control::join(service, join); });
      // Which of the two comes second is chance: the text names both in either order.
      EXPECT_EQ(error.code(), Code::invalid_usage) << error.text();
      if (each.names[0] == std::string("2 ranks")) return;
      for (const char* name : each.names) {
        if (std::string(name).starts_with("HCOMM 0")) name += 6;
        EXPECT_NE(error.text().find(name), std::string::npos) << error.text();
      }
    });
  }
}

TEST(Rendezvous, AnotherProtocolIsToldBothVersions) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const Hello hello{.protocol = 9, .rank = 1, .ranks = 2, .challenge = "c"};
  const Error error = error_of([&] { (void)knock(hub->root(), hello, Deadline::after_ms(9000)); });
  expect_text(error, Code::invalid_usage, {"protocol 9", "speaks 2"});
}

// An id serves one set of ranks: its listeners go when all are in, and who comes then is told.
TEST(Rendezvous, AnIdThatIsUsedUpIsToldApart) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  std::vector<std::unique_ptr<Control>> controls(2);
  in_threads(2, [&](uint32_t rank) {
    controls[rank] = Control::join(service, join_of(hub->root(), rank, 2));
  });
  const Error late = error_of([&] { (void)Control::join(service, join_of(hub->root(), 1, 2)); });
  expect_text(late, Code::peer_failed,
              {"Connection refused", "joined already", "make a new id"});
  EXPECT_FALSE(hub->over());
  controls.clear();
  EXPECT_TRUE(eventually([&] { return hub->over(); }));
}

// A job whose ranks could not join is over: whoever comes again is told so.
TEST(Rendezvous, AJobThatFailedToJoinSaysWhatToDo) {
  Service service;
  const UniqueFd listener = transport::listen_on(SocketAddress::loopback(0), "");
  Root root{.addresses = {SocketAddress::loopback(transport::port_of(listener.get()))},
            .nonce = random_nonce()};
  const auto hub = Hub::listen_at(service, root, UniqueFd(dup(listener.get())), Hub::Worlds::many);
  const Error first = error_of([&] { (void)Control::join(service, join_of(root, 0, 2, 200)); });
  expect_text(first, Code::timeout, {"1 of 2 joined", "HCOMM_INIT_TIMEOUT"});
  const Error again = error_of([&] { (void)Control::join(service, join_of(root, 0, 2, 200)); });
  expect_text(again, Code::timeout, {"1 of 2 joined", "start the job again"});
}

// RDV-01: the port is held from choice to use.
TEST(Rendezvous, ManyHubsAtOnce) {
  Service service;
  in_threads(8, [&](uint32_t) {
    for (int round = 0; round < 20; round++) {
      const auto hub = Hub::listen(service, loopback_config());
      std::thread other(
          [&] { EXPECT_NO_THROW((void)Control::join(service, join_of(hub->root(), 1, 2))); });
      EXPECT_NO_THROW((void)Control::join(service, join_of(hub->root(), 0, 2)));
      other.join();
    }
  });
}

// NET-09: only the addresses that were asked for are listened at.
TEST(Rendezvous, LoopbackAlone) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  ASSERT_EQ(hub->root().addresses.size(), 1u);
  EXPECT_TRUE(hub->root().addresses[0].is_loopback());
  const auto more = Hub::listen(service, Config());
  const auto usable = transport::usable_addresses(Config(), transport::interfaces());
  for (SocketAddress address : more->root().addresses) {
    address.set_port(0);
    EXPECT_NE(std::find(usable.begin(), usable.end(), address), usable.end()) << address.text();
    EXPECT_FALSE(address.is_wildcard());
  }
}

// RDV-07, in one process: 200 ranks need 400 descriptors.
TEST(Rendezvous, TwoHundredRanks) {
  constexpr uint32_t kRanks = 200;
  Crew crew(kRanks);
  in_threads(kRanks, [&](uint32_t rank) {
    const auto all = exchange(*crew.controls[rank], 1, rank, kRanks, std::string(500, 'x'),
                                                   Deadline::after_ms(30'000));
    EXPECT_EQ(all.size(), kRanks);
  });
}

// RDV-07, RDV-15: too few descriptors are one clear error on every rank, soon.
TEST(Rendezvous, TooFewDescriptors) {
  constexpr uint32_t kRanks = 60;
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const UniqueFd next(dup(0));
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(next.get()) + 80;  // 120 are needed
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::atomic<int> named = 0;
  const int64_t start = now_ns();
  in_threads(kRanks, [&](uint32_t rank) {
    const Error error =
        error_of([&] { (void)Control::join(service, join_of(hub->root(), rank, kRanks, 5000)); });
    EXPECT_NE(error.code(), Code::ok);
    if (error.text().find("Too many open files") != std::string::npos) named++;
  });
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_LT(now_ns() - start, 10'000'000'000);
  EXPECT_EQ(named, static_cast<int>(kRanks));
}

}  // namespace
}  // namespace hcomm::comm
