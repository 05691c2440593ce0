// SPDX-License-Identifier: Apache-2.0
#include "schedule/cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/samples.h"

namespace hcomm::schedule {
namespace {

using samples::build_all;
using samples::named;

Machine machine_of(uint32_t ranks, uint32_t ranks_per_node, uint32_t cores, Link between) {
  Machine machine{.ranks = ranks, .cores_of_node = cores};
  machine.links.assign(size_t{ranks} * ranks, between);
  for (uint32_t rank = 0; rank < ranks; rank++) machine.node.push_back(rank / ranks_per_node);
  return machine;
}

constexpr Link kNetwork{.latency_us = 5, .us_per_byte = 1e-3};

double price(const char* sample, const Machine& machine, const Load& load) {
  return predict_us(build_all(named(sample), machine.ranks), machine, load);
}

TEST(Cost, OneRankMovesNothing) {
  const Machine machine = machine_of(1, 1, 1, kNetwork);
  EXPECT_NEAR(price("dissemination_barrier", machine, {}), 0, 0.1);
  EXPECT_NEAR(price("ring_all_reduce", machine, {.block_bytes = 1000}),
              1000 * machine.copy_us_per_byte, 0.1);
}

TEST(Cost, AMessageTakesLatencyAndBytes) {
  const Machine machine = machine_of(2, 1, 1, kNetwork);
  const double us = price("chain_broadcast", machine, {.block_bytes = 1'000'000});
  EXPECT_NEAR(us, 5 + 1000, 1);
}

TEST(Cost, GrowsWithBytes) {
  for (const samples::Sample& sample : samples::all())
    for (const uint32_t ranks_per_node : {1u, 4u, 8u}) {
      const Machine machine = machine_of(8, ranks_per_node, 2, kNetwork);
      const std::vector<Schedule> schedules = build_all(sample, 8);
      Pricer pricer(schedules, machine);
      double last_us = 0;
      for (uint64_t bytes = 0; bytes <= 1 << 28; bytes = bytes == 0 ? 1 : bytes * 4) {
        const double us = pricer.predict_us({.block_bytes = bytes});
        // Turns on a shared core may fall better or worse while bytes hardly count.
        EXPECT_GE(us, last_us * (bytes < 4096 ? 0.9 : 0.999)) << sample.name << " " << bytes;
        last_us = us;
      }
    }
}

// What a rank passes on was in the cache, or it was not.
TEST(Cost, TilesThatTheCacheCannotHoldAreReadAgain) {
  Machine machine = machine_of(4, 4, 4, kNetwork);
  const Load whole{.block_bytes = 64 << 20};
  const Load tiles{.block_bytes = 64 << 20, .tile_bytes = 1 << 20, .window = 1};
  const double endless_us = price("ring_all_reduce", machine, whole);
  machine.cache_bytes = 32 << 20;
  machine.spill_us_per_byte = kNetwork.us_per_byte;
  EXPECT_GT(price("ring_all_reduce", machine, whole), endless_us * 1.2);
  EXPECT_LT(price("ring_all_reduce", machine, tiles), price("ring_all_reduce", machine, whole));
}

TEST(Cost, LatencyRulesSmallMessages) {
  const Machine machine = machine_of(8, 1, 1, kNetwork);
  const double ring_us = price("ring_all_reduce", machine, {.block_bytes = 8});
  const double direct_us = price("direct_all_reduce", machine, {.block_bytes = 8});
  EXPECT_NEAR(ring_us, 14 * kNetwork.latency_us, 7);
  EXPECT_LT(direct_us, 2 * kNetwork.latency_us);
  Machine nearer = machine;
  for (Link& link : nearer.links) link.latency_us /= 2;
  EXPECT_NEAR(price("ring_all_reduce", nearer, {.block_bytes = 8}), ring_us / 2, 5);
}

// LogP's o: 56 messages of eight ranks on two cores take their processors longer than 14.
TEST(Cost, MessagesThatTheKernelCarriesCostProcessors) {
  const auto us = [](const char* sample, double overhead_us) {
    const Link link{.latency_us = 5, .us_per_byte = 1e-3, .overhead_us = overhead_us};
    return price(sample, machine_of(8, 8, 2, link), {.block_bytes = 8});
  };
  EXPECT_LT(us("direct_all_reduce", 0), us("ring_all_reduce", 0));
  EXPECT_GT(us("direct_all_reduce", 5), 56 * 2 * 5 / 2);
  EXPECT_LT(us("direct_all_reduce", 5), 56 * 2 * 5);
}

TEST(Cost, RingMovesTwiceAllButItsShareOfLargeMessages) {
  for (const uint32_t ranks : {2u, 4u, 8u, 64u}) {
    Machine machine = machine_of(ranks, 1, 1, kNetwork);
    machine.reduce_us_per_byte = 0;
    const uint64_t bytes = 64 << 20;
    const double bound_us =
        2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) * kNetwork.us_per_byte;
    const double us = price("ring_all_reduce", machine, {.block_bytes = bytes});
    EXPECT_GT(us, bound_us);
    EXPECT_LT(us, bound_us * 1.05);
  }
}

TEST(Cost, TilesPipelineAChain) {
  const Machine machine = machine_of(8, 1, 1, kNetwork);
  const uint64_t bytes = 16 << 20;
  const double whole_us = price("chain_broadcast", machine, {.block_bytes = bytes});
  const double tiled_us = price("chain_broadcast", machine,
                                {.block_bytes = bytes, .tile_bytes = 256 << 10, .window = 4});
  const double one_slot_us = price("chain_broadcast", machine,
                                   {.block_bytes = bytes, .tile_bytes = 256 << 10, .window = 1});
  EXPECT_NEAR(whole_us, 7 * 16'777, 100);
  EXPECT_LT(tiled_us, whole_us / 4);
  EXPECT_GT(tiled_us, 16'777);
  EXPECT_GT(one_slot_us, tiled_us * 1.5);  // a rank forwards before it receives again
}

TEST(Cost, RanksThatShareACoreTakeTurns) {
  const Link near{.latency_us = 0.1, .us_per_byte = 1e-4};
  const double free_us = price("direct_all_reduce", machine_of(8, 8, 8, near), {.block_bytes = 64});
  const double shared_us =
      price("direct_all_reduce", machine_of(8, 8, 2, near), {.block_bytes = 64});
  const double two_nodes_us =
      price("direct_all_reduce", machine_of(8, 4, 2, near), {.block_bytes = 64});
  EXPECT_GT(shared_us, free_us + 4 * 1.5);
  EXPECT_LT(two_nodes_us, shared_us);
  // Large local work divides by the cores, not by the ranks.
  const uint64_t bytes = 16 << 20;
  const double ratio =
      price("direct_all_reduce", machine_of(8, 8, 2, near), {.block_bytes = bytes}) /
      price("direct_all_reduce", machine_of(8, 8, 8, near), {.block_bytes = bytes});
  EXPECT_NEAR(ratio, 4, 0.5);
}

TEST(Cost, IsTheSameEveryTime) {
  const Machine machine = machine_of(13, 5, 2, kNetwork);
  const Load load{.block_bytes = 12345, .tile_bytes = 1000, .window = 3};
  for (const samples::Sample& sample : samples::all()) {
    const std::vector<Schedule> schedules = build_all(sample, 13);
    EXPECT_EQ(predict_us(schedules, machine, load), predict_us(schedules, machine, load));
  }
}

}  // namespace
}  // namespace hcomm::schedule
