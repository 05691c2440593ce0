// SPDX-License-Identifier: Apache-2.0
// The control plane with ranks as threads: exchanges, failures, signatures, going.
#include "comm/control/control.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>

#include "comm/job_threads.h"

namespace hcomm::comm {
namespace {

constexpr uint64_t kWorld = 7;

Deadline soon() {
  return Deadline::after_ms(20'000);
}

class Sizes : public testing::TestWithParam<uint32_t> {};

TEST_P(Sizes, JoinAndExchange) {
  const uint32_t ranks = GetParam();
  Crew crew(ranks);
  in_threads(ranks, [&](uint32_t rank) {
    Control& control = *crew.controls[rank];
    EXPECT_EQ(control.rank(), rank);
    ASSERT_EQ(control.members().size(), ranks);
    EXPECT_EQ(control.members()[ranks - 1].pid, static_cast<uint32_t>(getpid()));
    for (int round = 0; round < 5; round++) {
      const std::string mine = fmt::format("part of {} in {}", rank, round);
      const std::vector<std::string> all = exchange(control, kWorld, rank, ranks, mine, soon());
      ASSERT_EQ(all.size(), ranks);
      for (uint32_t i = 0; i < ranks; i++)
        ASSERT_EQ(all[i], fmt::format("part of {} in {}", i, round));
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Sizes, testing::Values(1u, 2u, 3u, 8u, 64u),
                         testing::PrintToStringParamName());

TEST(Control, PartsMayBeEmptyOrLargeOrBinary) {
  constexpr uint32_t kRanks = 4;
  Crew crew(kRanks);
  in_threads(kRanks, [&](uint32_t rank) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65'536}, size_t{3} << 20}) {
      std::string mine(rank == 2 ? bytes : bytes / 2, static_cast<char>(rank));
      const auto all = exchange(*crew.controls[rank], kWorld, rank, kRanks, mine, soon());
      for (uint32_t i = 0; i < kRanks; i++)
        ASSERT_EQ(all[i], std::string(i == 2 ? bytes : bytes / 2, static_cast<char>(i)));
    }
  });
}

TEST(Control, PartsOverTheLimitAreAnErrorOnAllRanks) {
  constexpr uint32_t kRanks = 3;
  Crew crew(kRanks);
  in_threads(kRanks, [&](uint32_t rank) {
    const std::string mine(6 << 20, 'x');
    const Error error =
        error_of([&] { (void)exchange(*crew.controls[rank], kWorld, rank, kRanks, mine, soon()); });
    EXPECT_EQ(error.code(), Code::invalid_usage) << error.text();
    EXPECT_NE(error.text().find("bytes together"), std::string::npos) << error.text();
  });
}

TEST(Control, CommunicatorsDoNotWaitForOneAnother) {
  constexpr uint32_t kRanks = 4;
  Crew crew(kRanks);
  // Ranks 0 and 1 wait in a communicator that is complete only after all others are done.
  std::atomic<int> others = 0;
  in_threads(kRanks, [&](uint32_t rank) {
    Control& control = *crew.controls[rank];
    std::vector<std::thread> more;
    for (uint64_t id = 100; id < 110; id++)
      more.emplace_back([&, id] {
        for (int round = 0; round < 20; round++) {
          const auto all = exchange(control, id, rank, kRanks, std::to_string(id + rank), soon());
          for (uint32_t i = 0; i < kRanks; i++) ASSERT_EQ(all[i], std::to_string(id + i));
        }
        others++;
      });
    if (rank == 0) {
      EXPECT_EQ(exchange(control, 5, 0, 2, "a", soon())[1], "b");
    }
    for (std::thread& thread : more) thread.join();
    if (rank == 1) {
      EXPECT_TRUE(eventually([&] { return others == 40 - 10 || others == 40; }));
      EXPECT_EQ(exchange(control, 5, 1, 2, "b", soon())[0], "a");
    }
  });
}

TEST(Control, ExchangeTimesOutNamingWhoIsMissing) {
  Crew crew(4);
  in_threads(4, [&](uint32_t rank) {
    if (rank == 1 || rank == 2) return;
    const Error error = error_of([&] {
      (void)exchange(*crew.controls[rank], kWorld, rank, 4, "x", Deadline::after_ms(200));
    });
    EXPECT_EQ(error.code(), Code::timeout);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_TRUE(error.text().starts_with("communicator some: exchange of parts timed out: 2 of 4 "
                                         "ranks came, missing: ranks 1, 2"))
        << error.text();
  });
  // Who comes late is told the same at once.
  const Error late = error_of(
      [&] { (void)exchange(*crew.controls[1], kWorld, 1, 4, "x", Deadline::after_ms(20'000)); });
  EXPECT_EQ(late.code(), Code::timeout);
}

TEST(Control, DisagreementOnTheSizeOfACommunicator) {
  Crew crew(3);
  in_threads(2, [&](uint32_t rank) {
    Control& control = *crew.controls[rank];
    const Error error =
        error_of([&] { (void)exchange(control, kWorld, rank, rank + 2, "x", soon()); });
    EXPECT_EQ(error.code(), Code::invalid_usage);
    const bool both = error.text().find("has 2 members, rank 1 says 3") != std::string::npos ||
                      error.text().find("has 3 members, rank 0 says 2") != std::string::npos;
    EXPECT_TRUE(both) << error.text();
  });
}

struct Heard {
  std::mutex mutex;
  std::vector<Failure> all;
  size_t count() {
    const std::lock_guard lock(mutex);
    return all.size();
  }
  void listen(Control& control) {
    control.on_failure([this](const Failure& failure) {
      const std::lock_guard lock(mutex);
      all.push_back(failure);
    });
  }
};

TEST(Control, TheFirstFailureReachesAllRanksOnce) {
  constexpr uint32_t kRanks = 5;
  Crew crew(kRanks);
  std::vector<Heard> heard(kRanks);
  for (uint32_t i = 0; i < kRanks; i++) heard[i].listen(*crew.controls[i]);
  crew.controls[3]->report({.communicator = kWorld,
                            .code = Code::system,
                            .rank = 3,
                            .peer = 1,
                            .host = "h",
                            .sequence = 12,
                            .text = "disk full"});
  for (Heard& each : heard) ASSERT_TRUE(eventually([&] { return each.count() == 1; }));
  crew.controls[2]->report(
      {.communicator = kWorld, .code = Code::timeout, .rank = 2, .text = "too late"});
  crew.controls[2]->report({.communicator = 99, .code = Code::aborted, .rank = 2, .text = "x"});
  for (Heard& each : heard) {
    ASSERT_TRUE(eventually([&] { return each.count() == 2; }));
    EXPECT_EQ(each.all[0].text, "disk full");
    EXPECT_EQ(each.all[0].code, Code::system);
    EXPECT_EQ(each.all[0].rank, 3);
    EXPECT_EQ(each.all[0].peer, 1);
    EXPECT_EQ(each.all[0].sequence, 12u);
    EXPECT_EQ(each.all[1].communicator, 99u);
  }
  // A failed communicator exchanges no more, others do.
  in_threads(kRanks, [&](uint32_t rank) {
    EXPECT_EQ(error_of([&] {
                (void)exchange(*crew.controls[rank], kWorld, rank, kRanks, "", soon());
              }).text(),
              "disk full");
    EXPECT_EQ(exchange(*crew.controls[rank], 8, rank, kRanks, "", soon()).size(), kRanks);
  });
  for (auto& control : crew.controls) control->on_failure({});
}

TEST(Control, AFailureWakesAWaitingExchange) {
  Crew crew(3);
  in_threads(3, [&](uint32_t rank) {
    if (rank == 2) {
      crew.controls[2]->report(
          {.communicator = kWorld, .code = Code::aborted, .rank = 2, .text = "rank 2 aborted"});
      return;
    }
    const Error error =
        error_of([&] { (void)exchange(*crew.controls[rank], kWorld, rank, 3, "x", soon()); });
    EXPECT_EQ(error.text(), "rank 2 aborted");
    EXPECT_EQ(error.code(), Code::aborted);
  });
}

TEST(Control, FailuresBeforeTheCallbackAreNotLost) {
  Crew crew(2);
  crew.controls[0]->report({.communicator = 3, .code = Code::system, .text = "early"});
  Heard heard;
  EXPECT_TRUE(eventually([&] {
    heard.listen(*crew.controls[1]);
    crew.service.run([] {});
    return heard.count() > 0;
  }));
  crew.controls[1]->on_failure({});
}

TEST(Control, DifferentCallsAreAFailureThatNamesBothSides) {
  Crew crew(4);
  std::vector<Heard> heard(4);
  for (uint32_t i = 0; i < 4; i++) heard[i].listen(*crew.controls[i]);
  const auto sign = [&](uint32_t rank, const char* text) {
    crew.controls[rank]->stalled(kWorld, rank, 4, 5, text);
  };
  sign(0, "all_reduce float32 sum count=100");
  for (const uint32_t rank : {1u, 2u, 3u}) sign(rank, "all_reduce float32 sum count=200");
  for (Heard& each : heard) {
    ASSERT_TRUE(eventually([&] { return each.count() == 1; }));
    EXPECT_EQ(each.all[0].code, Code::invalid_usage);
    EXPECT_EQ(each.all[0].communicator, kWorld);
    EXPECT_EQ(each.all[0].sequence, 5u);
    EXPECT_EQ(each.all[0].peer, 0);
    EXPECT_EQ(each.all[0].text,
              "all_reduce #5 differs between ranks: rank 0: all_reduce float32 sum count=100; "
              "ranks 1-3: all_reduce float32 sum count=200; all ranks must make the same call");
  }
  for (auto& control : crew.controls) control->on_failure({});
}

TEST(Control, EqualCallsAreNoFailureAndTheSilentOnesAreKnown) {
  Crew crew(4);
  Heard heard;
  heard.listen(*crew.controls[1]);
  for (const uint32_t rank : {0u, 1u, 3u})
    for (int i = 0; i < 3; i++) crew.controls[rank]->stalled(kWorld, rank, 4, 9, "barrier");
  EXPECT_TRUE(eventually([&] {
    return crew.controls[1]->not_reported(kWorld, 4, 9, soon()) == std::vector<uint32_t>{2};
  }));
  EXPECT_EQ(crew.controls[2]->not_reported(kWorld, 4, 10, soon()),
            (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(heard.count(), 0u);
  crew.controls[1]->on_failure({});
}

// DIE-09: ranks that go in any order see no failure.
TEST(Control, GoingInAnyOrderIsNoFailure) {
  const uint32_t seed = std::random_device()();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; round++) {
    const auto ranks = static_cast<uint32_t>(2 + random() % 15);
    Crew crew(ranks);
    Heard heard;
    for (auto& control : crew.controls) heard.listen(*control);
    std::vector<uint32_t> order(ranks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::thread> threads;
    for (const uint32_t rank : order) {
      if (random() % 2 == 0)
        crew.controls[rank].reset();
      else
        threads.emplace_back([&, rank] { crew.controls[rank].reset(); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(heard.count(), 0u) << "seed " << seed << " round " << round << ": "
                                 << heard.all[0].text;
  }
}

TEST(Control, TheHubSaysGoodbyeToThoseWhoStay) {
  Crew crew(2);
  Heard heard;
  heard.listen(*crew.controls[1]);
  crew.controls[0].reset();
  const int64_t start = now_ns();
  crew.hub.reset();  // rank 1 stays: the hub lingers, then goes
  EXPECT_LT(now_ns() - start, 3'500'000'000);
  const Error error =
      error_of([&] { (void)exchange(*crew.controls[1], kWorld, 1, 2, "", soon()); });
  EXPECT_NE(error.text().find("has destroyed its communicators"), std::string::npos)
      << error.text();
  EXPECT_EQ(heard.count(), 0u);
  crew.controls[1].reset();
}

// A rank of the job that dies is blamed by its number in the communicator that needs it.
TEST(Control, ADeathIsBlamedByTheNumberInTheCommunicator) {
  Service service;
  const auto hub = Hub::listen(service, loopback_config());
  const Hello hello{.library = 100, .job = "", .rank = 3, .ranks = 4, .pid = 4711, .attempt = 1,
                    .challenge = "c", .host = "there", .settings = ""};
  Welcomed victim = knock(hub->root(), hello, soon());
  std::vector<std::unique_ptr<Control>> controls(3);
  in_threads(3, [&](uint32_t rank) {
    controls[rank] = Control::join(service, join_of(hub->root(), rank, 4));
  });
  const std::vector<uint32_t> high{2, 3}, low{0, 1};
  const auto peer_seen = [&](uint64_t id) {
    const Circle circle{id, "high", 0, high};
    const Error error =
        error_of([&] { (void)controls[2]->exchange(circle, "parts", "x", soon()); });
    EXPECT_EQ(error.code(), Code::peer_failed) << error.text();
    EXPECT_NE(error.text().find("rank 3 (host there, pid 4711) died"), std::string::npos);
    return error.peer();
  };
  std::thread dies([&] { victim.fd.reset(); });  // rank 2 waits already, or comes later
  EXPECT_EQ(peer_seen(9), 1);
  dies.join();
  EXPECT_EQ(peer_seen(10), 1);  // who comes later is told at once
  in_threads(2, [&](uint32_t rank) {  // those without the dead go on
    EXPECT_EQ(controls[rank]->exchange({11, "low", rank, low}, "parts", "x", soon()).size(), 2u);
  });
  const Failure death{.peer = 3}, other{.communicator = 9, .peer = 1};
  EXPECT_EQ(death.peer_in(high), 1);
  EXPECT_EQ(death.peer_in(low), -1);
  EXPECT_EQ(other.peer_in(low), 1);
}

TEST(Control, WhoHasLeftIsNotWaitedFor) {
  Crew crew(3);
  crew.controls[2].reset();
  in_threads(2, [&](uint32_t rank) {
    const Error error =
        error_of([&] { (void)exchange(*crew.controls[rank], kWorld, rank, 3, "x", soon()); });
    EXPECT_EQ(error.code(), Code::peer_failed);
    EXPECT_EQ(error.peer(), 2);
    // Those who are left go on among themselves.
    EXPECT_EQ(exchange(*crew.controls[rank], 8, rank, 2, "x", soon()).size(), 2u);
  });
}

}  // namespace
}  // namespace hcomm::comm
