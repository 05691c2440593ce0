// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "policy/policy.h"

namespace hcomm::policy {
namespace {

using schedule::Collective;
using schedule::Order;
using schedule::Shape;

Inputs inputs_of(uint32_t ranks, std::string_view wishes = "", std::string_view rules = "") {
  Inputs inputs{.machine = default_machine(ranks, 8, 8)};
  inputs.wishes = parse_wishes(wishes);
  inputs.rules = parse_rules(rules, "policy.conf");
  return inputs;
}

Request request_of(Collective collective, uint32_t ranks, uint64_t block_bytes) {
  return {.shape = {.collective = collective, .ranks = ranks}, .block_bytes = block_bytes};
}

Plan all_reduce_plan(const Inputs& inputs, uint64_t bytes) {
  return choose(inputs, request_of(Collective::all_reduce, inputs.machine.ranks, bytes));
}

std::string error_of(const Inputs& inputs, const Request& request) {
  try {
    choose(inputs, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    return error.text();
  }
  return "none";
}

TEST(Choose, EveryCollectiveHasAPlanAtEverySize) {
  for (int i = 0; i < schedule::kCollectives; i++)
    for (const uint32_t ranks : {1u, 2u, 3u, 8u, 12u})
      for (const uint64_t bytes : {0ull, 4ull, 64ull << 10, 1ull << 30}) {
        const auto collective = static_cast<Collective>(i);
        const Plan plan = choose(inputs_of(ranks), request_of(collective, ranks, bytes));
        ASSERT_NE(plan.chosen.algorithm, nullptr);
        EXPECT_EQ(plan.chosen.algorithm->collective, collective);
        EXPECT_FALSE(plan.reason.empty());
        for (const Candidate& candidate : plan.candidates) {
          EXPECT_GE(candidate.predicted_us * 1.02, plan.chosen.predicted_us);
          EXPECT_GE(candidate.window, 1u);
          EXPECT_TRUE(candidate.tile_bytes == 0 || candidate.tile_bytes < bytes);
        }
      }
}

TEST(Choose, VariedCollectivesIgnoreTheSize) {
  for (const Collective collective :
       {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
        Collective::gather, Collective::scatter}) {
    Request request = request_of(collective, 8, 4);
    request.shape.varied = true;
    const Plan small = choose(inputs_of(8), request);
    request.block_bytes = 1 << 30;
    request.shape.rank = 5;
    request.shape.in_place = true;
    const Plan large = choose(inputs_of(8), request);
    EXPECT_EQ(text(small.chosen), text(large.chosen));
    EXPECT_TRUE(small.chosen.algorithm->fits(request.shape));
  }
}

TEST(Choose, SmallMessagesTakeFewRoundsLargeOnesLittleBandwidth) {
  const Inputs inputs{.machine = default_machine(8, 1, 1)};  // a rank a node
  const Plan small = all_reduce_plan(inputs, 4), large = all_reduce_plan(inputs, 256 << 20);
  EXPECT_LT(small.chosen.predicted_us, 4 * 15);
  EXPECT_NE(small.chosen.algorithm, large.chosen.algorithm);
  const double bound_us = 2.0 * 7 / 8 * (256 << 20) * 8 / 25e3;
  EXPECT_LT(large.chosen.predicted_us, 1.3 * bound_us) << text(large.chosen);
  EXPECT_EQ(small.reason, "least predicted time");
}

// Where the network decides, many bytes are on their way at no cost; where processors do, the least
// time is chosen as it is.
TEST(Choose, SlowLinksAreKeptBusy) {
  Inputs inputs{.machine = default_machine(4, 1, 1)};
  for (schedule::Link& link : inputs.machine.links) link = {100, 8e-3};  // 1 Gbit/s
  for (const uint64_t bytes : {4u << 20, 16u << 20, 64u << 20}) {
    const Plan slow = all_reduce_plan(inputs, bytes);
    const Candidate& chosen = slow.chosen;
    EXPECT_TRUE(chosen.bound_by_links);
    EXPECT_GE(chosen.tile_bytes == 0 ? bytes : chosen.tile_bytes * chosen.window * 4, bytes / 4)
        << text(chosen);
    double least_us = 1e12;
    for (const Candidate& each : slow.candidates) least_us = std::min(least_us, each.predicted_us);
    EXPECT_LE(chosen.predicted_us, least_us * 1.02);
  }
  const Plan local = all_reduce_plan(inputs_of(4), 16 << 20);
  EXPECT_FALSE(local.chosen.bound_by_links);
  for (const Candidate& each : local.candidates)
    EXPECT_GE(each.predicted_us, local.chosen.predicted_us);
}

TEST(Choose, DeterministicAdmitsOnlyRankOrder) {
  Inputs inputs = inputs_of(8);
  inputs.deterministic = true;
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
    for (const uint64_t bytes : {4ull, 1ull << 20, 256ull << 20}) {
      const Plan plan = choose(inputs, request_of(collective, 8, bytes));
      for (const Candidate& candidate : plan.candidates)
        EXPECT_EQ(candidate.algorithm->order, Order::rank);
    }
  inputs.wishes = parse_wishes("ring");
  const std::string error = error_of(inputs, request_of(Collective::all_reduce, 8, 4));
  EXPECT_NE(error.find("deterministic mode"), std::string::npos) << error;
  EXPECT_NE(error.find("direct"), std::string::npos) << error;
  // It moves data only: any order of the same bits.
  EXPECT_EQ(choose(inputs, request_of(Collective::all_gather, 8, 4)).chosen.algorithm->name,
            "ring");
}

TEST(Choose, AWishIsFollowedWhereItIs) {
  const Inputs inputs = inputs_of(8, "ring,broadcast=chain");
  const Plan ring = all_reduce_plan(inputs, 4);
  EXPECT_EQ(ring.chosen.algorithm->name, "ring");
  EXPECT_EQ(ring.reason, "HCOMM_ALGO=ring");
  const Plan chain = choose(inputs, request_of(Collective::broadcast, 8, 4));
  EXPECT_EQ(chain.chosen.algorithm->name, "chain");
  EXPECT_EQ(chain.reason, "HCOMM_ALGO=broadcast=chain");
  const Plan barrier = choose(inputs, request_of(Collective::barrier, 8, 0));
  EXPECT_EQ(barrier.reason, "least predicted time");
  ASSERT_EQ(barrier.notes.size(), 1u);
  EXPECT_EQ(barrier.notes[0], "HCOMM_ALGO=ring is not for barrier");
}

TEST(Choose, AWishForOneCollectiveThatCannotRunIsAnError) {
  Request varied = request_of(Collective::all_to_all, 8, 4);
  varied.shape.varied = true;
  const std::string error = error_of(inputs_of(8, "all_to_all=bruck"), varied);
  EXPECT_NE(
      error.find("all_to_all of 8 ranks cannot run it with varied counts; it can run: direct"),
      std::string::npos)
      << error;
  EXPECT_EQ(error_of(inputs_of(8, "bruck"), varied), "none");  // it says all that have it
}

TEST(Choose, RulesDecideByPriorityThenOrder) {
  const char* rules = R"([tuning]
collective=all_reduce, size<4KiB -> algorithm=ring
collective=all_reduce, size<64KiB -> algorithm=direct
collective=all_reduce, size<1KiB, ranks=8 -> algorithm=recursive_doubling, priority=2
dtype=int8 -> tile=64K
)";
  const Inputs inputs = inputs_of(8, "", rules);
  EXPECT_EQ(all_reduce_plan(inputs, 1023).chosen.algorithm->name, "recursive_doubling");
  const Plan ring = all_reduce_plan(inputs, 1024);
  EXPECT_EQ(ring.chosen.algorithm->name, "ring");
  EXPECT_EQ(ring.reason, "policy.conf:2 (collective=all_reduce, size<4KiB -> algorithm=ring)");
  EXPECT_EQ(all_reduce_plan(inputs, 4096).chosen.algorithm->name, "direct");
  EXPECT_EQ(all_reduce_plan(inputs, 65536).reason, "least predicted time");
  Request bytes = request_of(Collective::all_reduce, 8, 1 << 20);
  bytes.dtype = "int8";
  EXPECT_EQ(choose(inputs, bytes).chosen.tile_bytes, 64u << 10);
  EXPECT_EQ(all_reduce_plan(inputs_of(8, "direct", rules), 64).reason, "HCOMM_ALGO=direct");
}

TEST(Choose, ARuleNamesTheWholePlan) {
  Inputs inputs = inputs_of(8, "", R"([tuning]
size<4M -> algorithm=ring, tile=whole
size>=4M -> algorithm=ring, tile=100000, window=3
)");
  const Plan whole = all_reduce_plan(inputs, 2 << 20), cut = all_reduce_plan(inputs, 16 << 20);
  EXPECT_EQ(text(whole.chosen), "ring");
  EXPECT_EQ(text(cut.chosen), "ring tile=100000B window=3");
  EXPECT_EQ(cut.candidates.size(), 1u);
  inputs.window = 5;  // HCOMM_WINDOW
  EXPECT_EQ(all_reduce_plan(inputs, 16 << 20).chosen.window, 5u);
}

TEST(Choose, ARuleMayBeOfOneLink) {
  Inputs inputs = inputs_of(8, "", R"([tuning]
link=tcp -> algorithm=ring
link!=shm -> algorithm=direct
)");
  const auto named = [&](const char* link) {
    inputs.link = link;
    return all_reduce_plan(inputs, 64);
  };
  EXPECT_EQ(named("tcp").chosen.algorithm->name, "ring");
  EXPECT_EQ(named("shm").reason, "least predicted time");
  EXPECT_EQ(named("").chosen.algorithm->name, "direct") << "several join them: not only shm";
  inputs.link = "tcp";
  Inputs others = inputs;
  others.link = "shm";
  EXPECT_NE(hash(inputs), hash(others));
}

TEST(Choose, ARuleThatCannotRunIsNotedAndSkipped) {
  Inputs inputs = inputs_of(8, "", "[tuning]\nranks=8 -> algorithm=ring");
  inputs.deterministic = true;
  const Plan plan = all_reduce_plan(inputs, 64);
  EXPECT_EQ(plan.chosen.algorithm->order, Order::rank);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("policy.conf:2 names ring, which cannot run here"),
            std::string::npos);
}

TEST(Choose, SizeIsThatOfTheLargerBuffer) {
  EXPECT_EQ(message_bytes(request_of(Collective::all_gather, 8, 10)), 80u);
  EXPECT_EQ(message_bytes(request_of(Collective::reduce_scatter, 8, 10)), 80u);
  EXPECT_EQ(message_bytes(request_of(Collective::all_reduce, 8, 10)), 10u);
  EXPECT_EQ(message_bytes(request_of(Collective::gather, 8, 10)), 80u);
  EXPECT_EQ(message_bytes(request_of(Collective::barrier, 8, 10)), 0u);
}

TEST(Choose, ForcedTilesAndWindowsAreKept) {
  Inputs inputs = inputs_of(8);
  inputs.tile_bytes = 100'000;
  inputs.window = 3;
  const Plan plan = all_reduce_plan(inputs, 16 << 20);
  for (const Candidate& candidate : plan.candidates) {
    EXPECT_EQ(candidate.tile_bytes, 100'000u);
    EXPECT_EQ(candidate.window, 3u);
  }
  EXPECT_EQ(all_reduce_plan(inputs, 1000).chosen.tile_bytes, 0u);
}

TEST(Choose, ScratchStaysSmall) {
  for (const uint32_t ranks : {2u, 8u, 48u}) {
    const Plan plan = all_reduce_plan(inputs_of(ranks), uint64_t{8} << 30);
    for (const Candidate& candidate : plan.candidates) {
      const std::vector<schedule::Schedule> all = algorithm::build_all(
          *candidate.algorithm, {.collective = Collective::all_reduce, .ranks = ranks});
      const double tile =
          static_cast<double>(candidate.tile_bytes == 0 ? uint64_t{8} << 30 : candidate.tile_bytes);
      for (const schedule::Schedule& schedule : all)
        EXPECT_LE(
            static_cast<double>(schedule.scratch.size()) * tile / schedule.parts * candidate.window,
            32 << 20)
            << text(candidate);
    }
  }
}

TEST(Choose, RankAndPlaceDoNotMatter) {
  const Inputs inputs = inputs_of(12);
  std::set<std::string> plans;
  for (uint32_t rank = 0; rank < 12; rank++)
    for (const bool in_place : {false, true}) {
      Request request = request_of(Collective::reduce, 12, 1 << 20);
      request.shape.root = 7;
      request.shape.rank = rank;
      request.shape.in_place = in_place;
      const Plan plan = choose(inputs, request);
      plans.insert(fmt::format("{} {}", text(plan.chosen), plan.chosen.predicted_us));
    }
  EXPECT_EQ(plans.size(), 1u);
}

TEST(Choose, ManyRanksAreStillPriced) {
  const Plan plan = all_reduce_plan(inputs_of(256), 4);
  EXPECT_FALSE(plan.candidates.empty());
  EXPECT_NE(plan.reason, "");
}

TEST(Hash, ChangesWithAllThatTheChoiceDependsOn) {
  std::set<uint64_t> hashes;
  const auto add = [&](void (*change)(Inputs&)) {
    Inputs inputs = inputs_of(4);
    change(inputs);
    EXPECT_TRUE(hashes.insert(hash(inputs)).second);
  };
  add([](Inputs&) {});
  add([](Inputs& i) { i.machine.links[3].latency_us += 1e-9; });
  add([](Inputs& i) { i.machine.links[3].overhead_us += 1e-9; });
  add([](Inputs& i) { i.machine.links[3].us_per_byte *= 2; });
  add([](Inputs& i) { i.machine.node[1] = 1; });
  add([](Inputs& i) { i.machine.cores_of_node++; });
  add([](Inputs& i) { i.machine.handover_us++; });
  add([](Inputs& i) { i.machine.step_us++; });
  add([](Inputs& i) { i.machine.copy_us_per_byte++; });
  add([](Inputs& i) { i.machine.reduce_us_per_byte++; });
  add([](Inputs& i) { i.machine.cache_bytes++; });
  add([](Inputs& i) { i.machine.spill_us_per_byte++; });
  add([](Inputs& i) { i.tile_bytes++; });
  add([](Inputs& i) { i.window++; });
  add([](Inputs& i) { i.deterministic = true; });
  add([](Inputs& i) { i.wishes = parse_wishes("ring"); });
  add([](Inputs& i) { i.wishes = parse_wishes("all_reduce=ring"); });
  add([](Inputs& i) { i.rules = parse_rules("[tuning]\nranks=2 -> tile=1M", "f"); });
  add([](Inputs& i) { i.rules = parse_rules("[tuning]\nranks=2 -> tile=2M", "f"); });
  EXPECT_EQ(hash(inputs_of(4)), hash(inputs_of(4)));
}

TEST(Sayings, AreWhatPeopleSaidALineEach) {
  Inputs inputs = inputs_of(4, "all_reduce=ring", "[tuning]\n\nranks=2 -> tile=1M  # why");
  inputs.tile_bytes = 4096;
  std::string said;
  for (const auto& [place, text] : sayings(inputs)) said += fmt::format("{}: {}; ", place, text);
  EXPECT_EQ(said,
            "deterministic: off; HCOMM_TILE: 4096; HCOMM_WINDOW: 0; HCOMM_ALGO: all_reduce=ring; "
            "policy.conf:3: ranks=2 -> tile=1M; ");
}

TEST(Explain, NamesInputsCandidatesAndWhatDecided) {
  const Inputs inputs = inputs_of(8, "", "[tuning]\nranks=8 -> algorithm=ring");
  const Request request = request_of(Collective::all_reduce, 8, 1 << 20);
  const std::string said = explain(inputs, request, choose(inputs, request));
  for (const char* part :
       {"all_reduce float32 1MiB\n", "8 ranks on 1 node of 8 cores",
        "links within a node: 0.15 us, 8 GB/s", "* ring", "chosen: ring",
        "settings: rules 1 of policy.conf\n", "(policy.conf:2 (ranks=8 -> algorithm=ring))"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(InputsFrom, TakeTheConfiguration) {
  Config config;
  config.algorithm = "direct";
  config.tile_bytes = 4096;
  config.window = 2;
  config.deterministic = true;
  config.policy_file = "/dev/null";
  const Inputs inputs = inputs_from(config, default_machine(2, 2, 2));
  EXPECT_EQ(inputs.wishes.size(), 1u);
  EXPECT_EQ(inputs.tile_bytes, 4096u);
  EXPECT_EQ(inputs.window, 2u);
  EXPECT_TRUE(inputs.deterministic);
  EXPECT_TRUE(inputs.rules.rules.empty());
}

}  // namespace
}  // namespace hcomm::policy
