// SPDX-License-Identifier: Apache-2.0
// Plans: what is kept, started again, moved along by other waits, and refused.

#include <algorithm>

#include "api/expect.h"

namespace hcomm::test {
namespace {

hcommPlan_t keep(const Rank& self, const std::function<void()>& calls) {
  hcommPlan_t plan = nullptr;
  hcommGroupStart();
  calls();
  self.ok(hcommPlanCreate(&plan), "create a plan");
  return plan;
}

class Plans : public Everywhere {};
HCOMM_EVERYWHERE(Plans);

TEST_P(Plans, AreStartedAgainAndAgain) {
  const std::string wrong = run_world(3, {.transports = transport()}, [](const Rank& self) {
    constexpr size_t kCount = 5000;
    std::vector<int> in(kCount), out(kCount, -1), seen(kCount, -1);
    const int next = (self.rank + 1) % 3, last = (self.rank + 2) % 3;
    hcommPlan_t plan = keep(self, [&] {
      hcommAllReduce(in.data(), out.data(), kCount, hcommInt32, hcommSum, self.comm, nullptr);
      hcommSend(in.data(), kCount, hcommInt32, next, self.comm, nullptr);
      hcommRecv(seen.data(), kCount, hcommInt32, last, self.comm, nullptr);
    });
    expect(self, out[0] == -1 && seen[0] == -1, "nothing to have run");
    for (int round = 0; round < 5; round++) {
      std::fill(in.begin(), in.end(), self.rank + round);
      self.ok(hcommPlanStart(plan), "start");
      self.ok(hcommPlanWait(plan), "wait");
      for (size_t i = 0; i < kCount; i++)
        if (out[i] != 3 + 3 * round || seen[i] != last + round)
          return self.findings->add("wrong data");
    }
    self.ok(hcommPlanDestroy(plan), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

// Ranks wait for their plans in different orders, and for other calls between start and wait.
TEST_P(Plans, AreMovedByOtherWaits) {
  const std::string wrong = run_world(2, {.transports = transport()}, [](const Rank& self) {
    hcommComm_t other = nullptr;
    self.ok(hcommCommSplit(self.comm, 0, 0, &other, nullptr), "split");
    std::vector<int> a(30'000, 1), b(30'000, 2);
    const auto sum = [&](std::vector<int>& of, hcommComm_t comm) {
      return hcommAllReduce(of.data(), of.data(), of.size(), hcommInt32, hcommSum, comm, nullptr);
    };
    hcommPlan_t plans[2] = {keep(self, [&] { sum(a, self.comm); }),
                            keep(self, [&] { sum(b, self.comm); })};
    int one = 0, two = 0;
    for (hcommPlan_t plan : plans) self.ok(hcommPlanStart(plan), "start");
    self.ok(sum_one(self, &one), "a call behind them");
    if (self.rank == 0)
      self.ok(hcommAllReduce(&one, &two, 1, hcommInt32, hcommSum, other, nullptr), "elsewhere");
    self.ok(hcommPlanWait(plans[self.rank == 0 ? 1 : 0]), "wait");
    self.ok(hcommPlanWait(plans[self.rank == 0 ? 0 : 1]), "wait for the other");
    if (self.rank == 1)
      self.ok(hcommAllReduce(&one, &two, 1, hcommInt32, hcommSum, other, nullptr), "elsewhere");
    expect(self, a[29'999] == 2 && b[0] == 4 && one == 2 && two == 4, "the right sums");
    // Destroyed under way, it is waited for; so does the end of a communicator, and a split.
    self.ok(hcommPlanStart(plans[0]), "start");
    self.ok(hcommCommDestroy(other), "destroy a communicator");
    self.ok(hcommPlanWait(plans[0]), "wait");
    self.ok(hcommPlanStart(plans[0]), "start");
    self.ok(hcommCommSplit(self.comm, 0, 0, &other, nullptr), "split behind a plan");
    self.ok(hcommCommDestroy(other), "destroy");
    self.ok(hcommPlanDestroy(plans[0]), "destroy a plan under way");
    self.ok(hcommPlanDestroy(plans[1]), "destroy");
    expect(self, a[0] == 8, "every start to have run");
  });
  EXPECT_EQ(wrong, "");
}

// Whatever takes a place behind a plan of this thread must move it first.
TEST_P(Plans, NothingWaitsBehindThem) {
  const std::string wrong = run_world(2, {.transports = transport()}, [](const Rank& self) {
    std::vector<int> a(300'000, 1), b(1000, 1);
    hcommStream_t stream = nullptr;
    hcommComm_t child = nullptr;
    char text[100];
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
    const auto sum = [&](std::vector<int>& of, hcommStream_t on) {
      hcommAllReduce(of.data(), of.data(), of.size(), hcommInt32, hcommSum, self.comm, on);
    };
    hcommPlan_t here = keep(self, [&] { sum(a, nullptr); }), there = nullptr;
    there = keep(self, [&] { sum(b, stream); });
    self.ok(hcommPlanStart(here), "start");
    self.ok(hcommCommExplain(self.comm, "all_reduce", 1, hcommInt32, text, sizeof text), "explain");
    self.ok(hcommPlanWait(here), "wait");
    self.ok(hcommPlanStart(here), "start");
    hcommGroupStart();
    self.ok(hcommCommSplit(self.comm, 0, 0, &child, nullptr), "a split that is dropped");
    self.ok(hcommGroupSimulateEnd(), "simulate");
    self.ok(hcommPlanWait(here), "wait");
    self.ok(hcommPlanStart(here), "start");
    self.ok(hcommPlanStart(there), "start on a stream");
    while (hcommPlanQuery(there) == hcommInProgress) std::this_thread::yield();
    self.ok(hcommPlanWait(there), "wait");
    self.ok(hcommPlanWait(here), "wait");
    expect(self, a[0] == 8 && b[0] == 2, "the right sums");
    for (hcommPlan_t plan : {here, there}) self.ok(hcommPlanDestroy(plan), "destroy");
    self.ok(hcommStreamDestroy(stream), "stream");
  });
  EXPECT_EQ(wrong, "");
}

TEST_P(Plans, OnStreamsRunThere) {
  const std::string wrong = run_world(2, {.transports = transport()}, [](const Rank& self) {
    hcommStream_t stream = nullptr;
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
    std::vector<int> a(30'000, 1);
    int one = 0, behind = 0;
    hcommPlan_t plan = keep(self, [&] {
      hcommAllReduce(a.data(), a.data(), a.size(), hcommInt32, hcommSum, self.comm, stream);
    });
    hcommPlan_t here = keep(self, [&] { sum_one(self, &one); });
    for (int round = 0; round < 3; round++) {
      self.ok(hcommPlanStart(plan), "start");
      while (hcommPlanQuery(plan) == hcommInProgress) std::this_thread::yield();
      self.ok(hcommPlanWait(plan), "wait");
    }
    // What a stream does may stand behind a plan of this thread.
    self.ok(hcommPlanStart(here), "start");
    self.ok(sum_one(self, &behind, stream), "behind it");
    self.ok(hcommStreamSynchronize(stream), "synchronize");
    self.ok(hcommPlanWait(here), "wait");
    expect(self, a[0] == 8 && one == 2 && behind == 2, "the right sums");
    self.ok(hcommPlanDestroy(plan), "destroy");
    self.ok(hcommPlanDestroy(here), "destroy");
    self.ok(hcommStreamDestroy(stream), "stream");
  });
  EXPECT_EQ(wrong, "");
}

TEST_P(Plans, AreFinishedByPollingAlone) {
  const std::string wrong = run_world(2, {.transports = transport()}, [](const Rank& self) {
    std::vector<int> a(300'000, 1);
    hcommPlan_t plan = keep(self, [&] {
      hcommAllReduce(a.data(), a.data(), a.size(), hcommInt32, hcommSum, self.comm, nullptr);
    });
    expect(self, hcommPlanQuery(plan), hcommSuccess, "query before the start");
    self.ok(hcommPlanStart(plan), "start");
    int underway = 1;
    while (underway > 0) {
      self.ok(hcommProgress(&underway), "progress");
      std::this_thread::yield();
    }
    expect(self, a[299'999] == 2, "the right sum");
    expect(self, hcommPlanQuery(plan), hcommSuccess, "query");
    self.ok(hcommPlanWait(plan), "wait");
    self.ok(hcommPlanDestroy(plan), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

TEST(PlanFailures, APollThatGetsNoAnswerTimesOut) {
  const std::string wrong = run_world(2, {.timeout_ms = 300}, [](const Rank& self) {
    int out = 0;
    hcommPlan_t plan = keep(self, [&] { sum_one(self, &out); });
    if (self.rank == 0) {
      self.ok(hcommPlanStart(plan), "start");
      while (hcommPlanQuery(plan) == hcommInProgress) std::this_thread::yield();
      expect(self, hcommPlanWait(plan), hcommTimeout, "wait");
      expect(self, says(hcommGetLastError(self.comm), "waits for rank 1"), "the rank by name");
      expect(self, hcommPlanStart(plan), hcommSuccess, "another start");
      expect(self, hcommPlanWait(plan), hcommTimeout, "the error that stays");
    } else {
      wait_for_state(self);
    }
    self.ok(hcommPlanDestroy(plan), "destroy");
  });
  EXPECT_EQ(wrong, "rank 0: destroy: timeout\n");
}

TEST(PlanFailures, AThreadThatLeavesAPlanBehindFailsTheCommunicator) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = 0;
    hcommPlan_t plan = keep(self, [&] { sum_one(self, &out); });
    if (self.rank == 0) {
      std::thread([&] { self.ok(hcommPlanStart(plan), "start"); }).join();
      expect(self, hcommPlanWait(plan), hcommAborted, "wait");
      expect(self, says(hcommGetLastError(self.comm), "end of a thread"), "the reason");
    } else {
      expect(self, wait_for_state(self), hcommAborted, "the other rank");
    }
    self.ok(hcommPlanDestroy(plan), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

TEST(PlanFailures, WhatCannotBeIsRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = 0;
    hcommPlan_t plan = nullptr;
    hcommComm_t child = nullptr;
    expect(self, hcommPlanCreate(nullptr), hcommInvalidArgument, "no plan to store");
    expect(self, hcommPlanCreate(&plan), hcommInvalidUsage, "outside of a group");
    hcommGroupStart();
    hcommGroupStart();
    expect(self, hcommPlanCreate(&plan), hcommInvalidUsage, "in an inner group");
    self.ok(hcommGroupEnd(), "inner end");
    hcommBroadcast(&out, &out, 1, hcommInt32, 9, self.comm, nullptr);
    expect(self, hcommPlanCreate(&plan), hcommInvalidArgument, "a call that was refused");
    hcommGroupStart();
    hcommCommSplit(self.comm, 0, 0, &child, nullptr);
    expect(self, hcommPlanCreate(&plan), hcommInvalidUsage, "a split");
    expect(self, plan == nullptr && child == nullptr, "no plan and no child");
    hcommGroupStart();
    self.ok(hcommPlanCreate(&plan), "an empty plan");
    self.ok(hcommPlanStart(plan), "start nothing");
    expect(self, hcommPlanStart(plan), hcommInvalidUsage, "started twice");
    self.ok(hcommPlanQuery(plan), "nothing is done");
    self.ok(hcommPlanWait(plan), "wait for nothing");
    expect(self, hcommPlanWait(plan), hcommInvalidUsage, "waited for twice");
    self.ok(hcommPlanDestroy(plan), "destroy");
    self.ok(hcommPlanDestroy(nullptr), "destroy none");
    expect(self, hcommPlanStart(nullptr), hcommInvalidArgument, "none to start");
    plan = keep(self, [&] { sum_one(self, &out); });
    hcommGroupStart();
    expect(self, hcommPlanStart(plan), hcommInvalidUsage, "inside a group");
    self.ok(hcommGroupEnd(), "end");
    self.ok(hcommPlanStart(plan), "start");
    std::thread([&] {
      expect(self, hcommPlanWait(plan), hcommInvalidUsage, "another thread's wait");
      expect(self, hcommPlanQuery(plan), hcommInvalidUsage, "another thread's query");
      expect(self, hcommPlanDestroy(plan), hcommInvalidUsage, "another thread's destroy");
    }).join();
    self.ok(hcommPlanWait(plan), "wait");
    expect(self, out == 2, "the right sum");
    self.ok(hcommCommSplit(self.comm, 0, 0, &child, nullptr), "split");
    hcommPlan_t of_child = keep(self, [&] {
      hcommBarrier(child, nullptr);
    });
    self.ok(hcommCommFinalize(child), "finalize");
    expect(self, hcommPlanStart(of_child), hcommInvalidUsage, "a finalized communicator");
    self.ok(hcommCommDestroy(child), "destroy");
    self.ok(hcommCommSplit(self.comm, 0, 0, &child, nullptr), "another one, often at its address");
    expect(self, hcommPlanStart(of_child), hcommInvalidArgument, "a communicator that is gone");
    self.ok(hcommCommDestroy(child), "destroy");
    self.ok(hcommPlanDestroy(of_child), "a plan whose communicator is gone");
    hcommStream_t stream;
    self.ok(hcommStreamCreate(&stream, "cpu"), "a stream");
    hcommPlan_t of_stream = keep(self, [&] {
      hcommBarrier(self.comm, stream);
    });
    self.ok(hcommStreamDestroy(stream), "destroy");
    self.ok(hcommStreamCreate(&stream, "cpu"), "another one, often at its address");
    expect(self, hcommPlanStart(of_stream), hcommInvalidArgument, "a stream that is gone");
    self.ok(hcommStreamDestroy(stream), "destroy");
    self.ok(hcommPlanDestroy(of_stream), "a plan whose stream is gone");
    self.ok(hcommPlanDestroy(plan), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
