// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "schedule/samples.h"

namespace hcomm::schedule {
namespace {

using samples::build_all;
using samples::named;

// Schedules of all ranks by a program that a test writes in place.
std::vector<Schedule> program(Shape shape, const std::function<void(Builder&)>& body,
                              Order order = Order::any) {
  std::vector<Schedule> all;
  for (shape.rank = 0; shape.rank < shape.ranks; shape.rank++) {
    Builder builder(shape);
    body(builder);
    all.push_back(builder.finish("test", order));
  }
  return all;
}

void expect_fault(const std::vector<Schedule>& all, std::string_view what) {
  const Report report = check(all);
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.finding.find(what), std::string::npos) << report.finding;
}

TEST(Check, SamplesHoldAtEveryRankCountRootAndPlace) {
  for (const samples::Sample& sample : samples::all())
    for (uint32_t ranks = 1; ranks <= 17; ranks++)
      for (uint32_t root = 0; root < (rooted(sample.collective) ? ranks : 1); root++)
        for (const bool in_place : {false, true}) {
          const Shape shape{.in_place = in_place, .ranks = ranks, .root = root};
          for (const uint32_t credits : {0u, 1u, 3u}) {
            const Report report = check(build_all(sample, shape), {.credits = credits, .tiles = 3});
            EXPECT_TRUE(report.ok)
                << sample.name << " ranks " << ranks << " root " << root << ": " << report.finding;
          }
        }
}

TEST(Check, VariedSamplesHold) {
  for (const char* name : {"ring_all_gather", "pairwise_all_to_all", "linear_gather"})
    for (uint32_t ranks = 1; ranks <= 9; ranks++) {
      const Report report = check(build_all(named(name), Shape{.varied = true, .ranks = ranks}));
      EXPECT_TRUE(report.ok) << name << " " << ranks << ": " << report.finding;
    }
}

TEST(Check, CountsStepsOfAllRanks) {
  EXPECT_EQ(check(build_all(named("chain_broadcast"), 4)).steps, 1u + 1 + 2 + 2 + 1);
}

TEST(Check, MessageWithoutReceiveIsFound) {
  expect_fault(program({.collective = Collective::broadcast, .ranks = 2},
                       [](Builder& b) {
                         if (b.rank() == 0) b.send(1, b.input());
                       }),
               "rank 0 sends 1 messages to rank 1, which receives 0");
}

TEST(Check, LengthsMustAgree) {
  // Part 0 sent, part 1 expected.
  expect_fault(program({.collective = Collective::broadcast, .ranks = 2},
                       [](Builder& b) {
                         b.parts(2);
                         if (b.rank() == 0) {
                           b.copy(b.output(), b.input());
                           b.send(1, b.input_part(0, 0));
                         } else {
                           b.recv(0, b.output_part(0, 1));
                         }
                       }),
               "differs in length");
  // A block of another length than the receiver's, though of equal part.
  expect_fault(program({.collective = Collective::all_gather, .varied = true, .ranks = 2},
                       [](Builder& b) {
                         b.send(1 - b.rank(), b.input());
                         b.recv(1 - b.rank(), b.output(b.rank()));
                       }),
               "differs in length");
}

TEST(Check, GatherVForwardingNeedsWhatOnlyTheRootKnows) {
  const auto forward = [](Builder& b) {  // 2 -> 1 -> 0
    if (b.rank() == 2) b.send(1, b.input());
    if (b.rank() == 1) {
      const Slice of_two = b.scratch_block(2);
      b.recv(2, of_two);
      b.send(0, of_two);
      b.send(0, b.input());
    }
    if (b.rank() == 0) {
      b.copy(b.output(0), b.input());
      b.recv(1, b.output(2));
      b.recv(1, b.output(1));
    }
  };
  EXPECT_TRUE(check(program({.collective = Collective::gather, .ranks = 3}, forward)).ok);
  expect_fault(program({.collective = Collective::gather, .varied = true, .ranks = 3}, forward),
               "whose length only the root knows");
}

TEST(Check, SendsThatWaitForOneAnotherDeadlock) {
  const auto both_send_first =
      program({.collective = Collective::all_gather, .ranks = 2}, [](Builder& b) {
        const uint32_t peer = 1 - b.rank();
        b.copy(b.output(b.rank()), b.input());
        b.send(peer, b.input());
        b.recv(peer, b.output(peer));
      });
  EXPECT_TRUE(check(both_send_first).ok);  // nothing makes the receive wait for the send
  std::vector<Schedule> waiting = both_send_first;
  for (Schedule& schedule : waiting) {
    Step& recv = schedule.steps.back();
    recv.first_need = static_cast<uint32_t>(schedule.needs.size());
    recv.need_count = 1;
    schedule.needs.push_back(1);
  }
  expect_fault(waiting, "deadlock");
  EXPECT_NE(check(waiting).finding.find("rank 1"), std::string::npos);
  EXPECT_TRUE(check(waiting, {.credits = 1, .tiles = 4}).ok);  // one message fits the channel
}

TEST(Check, RaceIsFoundThoughAMessageHappensToOrderIt) {
  std::vector<Schedule> all =
      program({.collective = Collective::all_reduce, .in_place = true, .ranks = 2}, [](Builder& b) {
        const Slice tmp = b.scratch(b.input());
        b.send(1 - b.rank(), b.input());
        b.recv(1 - b.rank(), tmp);
        if (b.rank() == 0) b.reduce(b.output(), b.input(), tmp);
        if (b.rank() == 1) b.reduce(b.output(), tmp, b.input());
      });
  EXPECT_TRUE(check(all).ok) << check(all).finding;
  // The reduction waits for the receive alone; the send may still read what it writes.
  Step& reduce = all[0].steps.back();
  ASSERT_EQ(reduce.need_count, 2u);
  reduce.first_need++;
  reduce.need_count = 1;
  expect_fault(all, "race: rank 0 step 0 (send in[0] to 1) and rank 0 step 2");
}

TEST(Check, OverlapWithinAStepIsFound) {
  const Shape shape{.collective = Collective::all_gather, .ranks = 3};
  const auto shifted = [](Builder& b) { b.copy(sub(b.output(0), 0, 2), sub(b.output(0), 1, 2)); };
  expect_fault(program(shape, shifted), "reads at chunk 0 of its slice what it writes at chunk 1");
  const auto unwritten = [](Builder& b) { b.copy(b.output(0), b.output(1)); };
  expect_fault(program(shape, unwritten), "reads at chunk 0 of its slice what was never written");
}

TEST(Check, MeaningFaultsAreNamed) {
  const Shape two{.collective = Collective::all_reduce, .ranks = 2};
  const auto exchange = [](Builder& b) {
    const Slice tmp = b.scratch(b.input());
    b.send(1 - b.rank(), b.input());
    b.recv(1 - b.rank(), tmp);
    return tmp;
  };
  expect_fault(program(two, [&](Builder& b) { exchange(b); }), "never writes output");
  expect_fault(program(two, [&](Builder& b) { b.copy(b.output(), exchange(b)); }), "lacks rank 0");
  expect_fault(program(two,
                       [&](Builder& b) {
                         const Slice tmp = exchange(b);
                         b.reduce(b.output(), tmp, tmp);
                       }),
               "counts rank 1 twice");
  const auto own_first = [&](Builder& b) { b.reduce(b.output(), b.input(), exchange(b)); };
  expect_fault(program(two, own_first), "not the same tree");
  const auto descending = [&](Builder& b) {
    const Slice tmp = exchange(b);
    b.rank() == 1 ? b.reduce(b.output(), b.input(), tmp) : b.reduce(b.output(), tmp, b.input());
  };
  EXPECT_TRUE(check(program(two, descending)).ok);
  expect_fault(program(two, descending, Order::rank), "no left fold in rank order");
}

TEST(Check, RankOrderIsFoldedInOnePlace) {
  // 0 -> 1 -> 2, each adds its own: a left fold by tree, but of partial sums that travelled.
  expect_fault(program(
                   {.collective = Collective::reduce, .ranks = 3, .root = 2},
                   [](Builder& b) {
                     const Slice tmp = b.scratch(b.input()), sum = b.scratch(b.input());
                     if (b.rank() == 0) return b.send(1, b.input());
                     b.recv(b.rank() - 1, tmp);
                     if (b.rank() == 2) return b.reduce(b.output(), tmp, b.input());
                     b.reduce(sum, tmp, b.input());
                     b.send(2, sum);
                   },
                   Order::rank),
               "made in one place");
}

TEST(Check, InputIsNotWrittenUnlessInPlace) {
  const auto writes_input = [](Builder& b) {
    if (b.rank() == 0) {
      b.copy(b.output(), b.input());
      b.send(1, b.input());
    } else {
      b.recv(0, b.output());
    }
    if (b.rank() == 0) b.copy(b.input(), b.output());
  };
  expect_fault(program({.collective = Collective::broadcast, .ranks = 2}, writes_input),
               "writes the input");
}

TEST(Check, OutputThatARankLacksIsNotWritten) {
  std::vector<Schedule> all = build_all(named("linear_gather"), 3);
  all[1].steps.push_back({.kind = StepKind::copy, .a = {kInput, 0, 1}, .to = {kOutput, 0, 1}});
  expect_fault(all, "leaves its buffer, which has 0 chunks");
}

TEST(Check, BarrierNeedsEveryPair) {
  std::vector<Schedule> all = build_all(named("dissemination_barrier"), 5);
  EXPECT_TRUE(check(all).ok);
  for (Schedule& schedule : all)
    for (Step& step : schedule.steps) step.need_count = 0;
  expect_fault(all, "may leave the barrier before");
}

TEST(Check, GarbageIsRefusedNotFollowed) {
  const std::vector<Schedule> good = build_all(named("ring_all_reduce"), 3);
  const std::function<void(Schedule&)> spoil[] = {
      [](Schedule& s) { s.steps[0].first_need = 1 << 30; },
      [](Schedule& s) { s.steps[0].need_count = ~0u; },
      [](Schedule& s) { s.steps[0].first_peer = ~0u; },
      [](Schedule& s) { s.steps[0].peer_count = ~0u; },
      [](Schedule& s) { s.steps[0].a.chunk = ~0u; },
      [](Schedule& s) { s.steps[0].a.count = ~0u; },
      [](Schedule& s) { s.steps[0].a.buffer = 7; },
      [](Schedule& s) { s.peers[0] = 3; },
      [](Schedule& s) { s.needs[0] = 1000; },
      [](Schedule& s) { s.scratch[0].chunk = 9; },
      [](Schedule& s) { s.scratch[0].buffer = 5; },
      [](Schedule& s) { s.parts = 0; },
      [](Schedule& s) { s.shape.rank = 2; },
      [](Schedule& s) { s.shape.ranks = 4; },
      [](Schedule& s) { s.shape.root = 9; },
      [](Schedule& s) { s.steps[0].kind = StepKind::native; },
      [](Schedule& s) { s.algorithm = "other"; },
  };
  for (size_t i = 0; i < std::size(spoil); i++) {
    std::vector<Schedule> all = good;
    spoil[i](all[1]);
    EXPECT_FALSE(check(all).ok) << "spoilt " << i;
  }
  EXPECT_FALSE(check({}).ok);
}

}  // namespace
}  // namespace hcomm::schedule
