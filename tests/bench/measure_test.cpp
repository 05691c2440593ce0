// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hcc-bench/measure/memory.h"
#include "hcc-bench/measure/sampler.h"
#include "hcc-bench/measure/statistics.h"
#include "hcc-bench/operation.h"
#include "hcc-bench/run.h"

namespace hcomm::bench {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// One rank that stands for all: the others are `slower` than it by a constant.
class LoneTeam : public Team {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 4; }
  void barrier() override { barriers++; }
  void maximum(std::span<double> values) override {
    exchanges++;
    for (double& value : values) value += slower;
  }
  int barriers = 0, exchanges = 0;
  double slower = 0;
};

class HandClock : public Clock {
 public:
  int64_t read_ns() const override { return now; }
  int64_t now = 0;
};

Samples run(const Rules& rules, int64_t step_ns, LoneTeam& team, double passes = 1) {
  HandClock clock;
  std::atomic<int> stop{0};
  int64_t done = 0;
  const Subject subject{[&](int64_t count) {
                          clock.now += step_ns * count;
                          done += count;
                          ASSERT_LT(done, 100'000'000);
                        },
                        {},
                        passes};
  return sample(team, clock, rules, subject, stop);
}

// BEN-01: with a fixed time of 1 s, algbw = S / t and busbw has nccl-tests' factor.
TEST(Bandwidth, Ben01Factors) {
  using enum Operation;
  constexpr size_t kBytes = 8'000'000'000;  // 8 GB/s at 1 s
  for (const int n : {1, 2, 4, 8}) {
    const double share = (n - 1.0) / n;
    const struct {
      Operation operation;
      double factor;
    } kHand[] = {{all_reduce, 2 * share}, {all_gather, share},   {reduce_scatter, share},
                 {all_to_all, share},     {gather, share},       {scatter, share},
                 {broadcast, 1},          {reduce, 1},           {send_recv, 1},
                 {ping_pong, 1},          {all_gather_v, share}, {reduce_scatter_v, share},
                 {all_to_all_v, share},   {gather_v, share},     {scatter_v, share}};
    for (const auto& hand : kHand) {
      LoneTeam team;
      Row row;
      row.bytes = kBytes;
      fill_times(row, run({.samples = 3, .warmup = 0}, kSecond, team),
                 bus_factor(hand.operation, n));
      ASSERT_TRUE(row.algbw && row.busbw);
      EXPECT_DOUBLE_EQ(row.p50_us, 1e6);
      EXPECT_DOUBLE_EQ(*row.algbw, 8) << info(hand.operation).name << " " << n;
      EXPECT_DOUBLE_EQ(*row.busbw, 8 * hand.factor) << info(hand.operation).name << " " << n;
      EXPECT_TRUE(std::isfinite(*row.busbw));
    }
  }
}

// BEN-03: algbw does not grow with the number of ranks; 1e9 bytes in 1 s is 1 GB/s, not 1 GiB/s.
TEST(Bandwidth, Ben03IndependentOfRanks) {
  for (int n = 1; n <= 8; n++) {
    const Rates r = rates(1'000'000'000, 1, bus_factor(Operation::all_reduce, n));
    EXPECT_DOUBLE_EQ(*r.algbw, 1);
    EXPECT_DOUBLE_EQ(*r.busbw, 2.0 * (n - 1) / n);
  }
}

// BEN-05: no warm-up, one sample, no bytes, no time: defined, finite, ends.
TEST(Sampler, Ben05Corners) {
  LoneTeam team;
  const Samples one = run({.samples = 1, .warmup = 0}, kSecond, team);
  EXPECT_EQ(one.seconds, std::vector<double>{1});
  const Statistics s = statistics(one.seconds);
  EXPECT_EQ(s.n, 1u);
  EXPECT_EQ(s.cv, 0);
  EXPECT_EQ(s.noise, 0);
  EXPECT_FALSE(s.p99);
  EXPECT_FALSE(rates(0, 1, 1).algbw);
  EXPECT_FALSE(rates(8, 0, 1).algbw);
  EXPECT_EQ(statistics({}).n, 0u);

  const Samples still = run({.samples = 20}, 0, team);  // a clock that does not move
  EXPECT_EQ(still.seconds.size(), 20u);
  EXPECT_TRUE(std::isfinite(statistics(still.seconds).cv));
}

TEST(Sampler, BatchesFillTheTarget) {
  LoneTeam team;
  const Samples fast = run({.target_s = 2e-4, .samples = 10}, 1000, team);  // 1 us
  EXPECT_GE(fast.batch, 200);
  EXPECT_LE(fast.batch, 202);
  EXPECT_NEAR(statistics(fast.seconds).median, 1e-6, 1e-12);
  EXPECT_EQ(run({.samples = 10}, 10'000'000, team).batch, 1);
  EXPECT_EQ(run({.samples = 10, .batch = 7}, 1000, team).batch, 7);
}

TEST(Sampler, StopsWhenTheMedianIsKnown) {
  LoneTeam team;
  const Rules rules{.min_time_s = 0.2, .max_time_s = 100};
  const Samples quiet = run(rules, 1'000'000, team);  // 1 ms, all alike
  EXPECT_TRUE(quiet.settled);
  EXPECT_GE(quiet.seconds.size(), 200u);
  EXPECT_LE(quiet.seconds.size(), 300u);
  const Samples slow = run({.min_time_s = 0.2, .max_time_s = 2}, 10 * kSecond, team);
  EXPECT_EQ(slow.seconds.size(), 3u);  // three, even when one takes longer than allowed
}

TEST(Sampler, TimesAreExchangedAfterRunsOfBatches) {
  LoneTeam team;
  run({.samples = 1000, .warmup = 0, .batch = 1}, 1000, team);
  EXPECT_EQ(team.barriers, 1001);  // one for the estimate
  EXPECT_LE(team.exchanges, 14);
}

// BEN-09: what is reported is the slowest rank's time, wherever it is.
TEST(Sampler, Ben09TheSlowestRankCounts) {
  LoneTeam team;
  team.slower = 0.010;
  const Samples samples = run({.samples = 5, .warmup = 0, .batch = 1}, 1'000'000, team);
  EXPECT_NEAR(statistics(samples.seconds).median, 0.011, 1e-9);
}

TEST(Sampler, ARoundTripIsTwoPasses) {
  LoneTeam team;
  EXPECT_DOUBLE_EQ(run({.samples = 3, .warmup = 0}, kSecond, team, 2).seconds[0], 0.5);
}

TEST(Sampler, AStopOnAnyRankEndsTheRow) {
  LoneTeam team;
  HandClock clock;
  std::atomic<int> stop{2};
  const Subject subject{[&](int64_t count) { clock.now += 1'000'000 * count; }, {}, 1};
  const Rules rules{.max_time_s = 1000, .samples = 100'000, .warmup = 0};
  const Samples samples = sample(team, clock, rules, subject, stop);
  EXPECT_TRUE(samples.interrupted);
  EXPECT_FALSE(samples.settled);
  EXPECT_LT(samples.seconds.size(), 100u);
}

TEST(Statistics, OrderStatistics) {
  std::vector<double> values;
  for (int i = 1; i <= 99; i++) values.push_back(100 - i);
  Statistics s = statistics(values);
  EXPECT_EQ(s.median, 50);
  EXPECT_EQ(s.least, 1);
  EXPECT_FALSE(s.p99);  // hidden below 100 samples
  values.push_back(100);
  s = statistics(values);
  ASSERT_TRUE(s.p99);
  EXPECT_EQ(*s.p99, 99);  // 99 of 100 are not larger
  EXPECT_DOUBLE_EQ(s.median, 50.5);
  EXPECT_NEAR(s.noise, 0.2, 0.02);  // ranks 40 to 60 of 100
  values.push_back(101);
  EXPECT_EQ(statistics(values).p99, 100);  // 99 of 101 would be too few
}

TEST(Statistics, RankTest) {
  std::vector<double> base, same, slower;
  for (int i = 0; i < 50; i++) {
    base.push_back(100 + i % 10);
    same.push_back(100 + (i * 7) % 10);
    slower.push_back(106 + i % 10);
  }
  EXPECT_GT(probability_not_slower(base, same), 0.2);
  EXPECT_LT(probability_not_slower(base, slower), 1e-6);
  EXPECT_GT(probability_not_slower(slower, base), 0.99);
  EXPECT_EQ(probability_not_slower(base, {}), 1);
  const std::vector<double> equal(5, 1.0);
  EXPECT_EQ(probability_not_slower(equal, equal), 1);
}

TEST(Statistics, ThinnedKeepsTheEnds) {
  std::vector<double> values;
  for (int i = 999; i >= 0; i--) values.push_back(i);
  const std::vector<double> thin = thinned(values, 11);
  ASSERT_EQ(thin.size(), 11u);
  EXPECT_EQ(thin.front(), 0);
  EXPECT_EQ(thin.back(), 999);
  EXPECT_EQ(thinned({}, 5).size(), 0u);
}

// A limit of a group above counts as well; pages that can be dropped do not.
TEST(Memory, TheTightestGroupCounts) {
  char folder[] = "/tmp/hcc-bench-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string mount = folder;
  const auto group = [&](const std::string& path, const char* limit, const char* used,
                         const char* stat) {
    std::filesystem::create_directories(mount + path);
    std::ofstream(mount + path + "/memory.max") << limit << "\n";
    std::ofstream(mount + path + "/memory.current") << used << "\n";
    std::ofstream(mount + path + "/memory.stat") << stat;
  };
  group("/job/step/task", "max", "100", "");
  EXPECT_EQ(group_bytes(mount, "/job/step/task"), UINT64_MAX);
  group("/job/step", "5000", "1000", "");
  EXPECT_EQ(group_bytes(mount, "/job/step/task"), 4000u);
  group("/job", "3000", "1500", "anon 900\ninactive_file 500\n");
  EXPECT_EQ(group_bytes(mount, "/job/step/task"), 2000u);
  group("", "1000", "2000", "inactive_file 100\n");
  EXPECT_EQ(group_bytes(mount, "/job/step/task"), 0u);
  EXPECT_EQ(group_bytes(mount, "/"), 0u);
  EXPECT_EQ(group_bytes(mount + "/job", "/step"), 2000u);  // as a container sees it
  std::filesystem::remove_all(mount);
}

TEST(Memory, ThisHostHasSome) {
  EXPECT_GT(available_bytes(), 1u << 20);
  EXPECT_GT(resident_mib(), 0.1);
}

}  // namespace
}  // namespace hcomm::bench
