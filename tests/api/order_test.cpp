// SPDX-License-Identifier: Apache-2.0
// The order of calls over threads, streams and groups, and what a call that fails leaves behind.
#include <gtest/gtest.h>

#include <numeric>

#include "collective/world.h"
#include "process/processes.h"

namespace hcomm::test {
namespace {

bool says(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

// An algorithm that was asked for and cannot run the call: an error, and nobody waits for its turn.
TEST(Order, ACallThatCannotBeginHoldsNobodyUp) {
  for (const bool on_stream : {false, true}) {
    EXPECT_EQ(run_processes(3, [&](const Process& self) {
      setenv("HCOMM_ALGO", "all_to_all=bruck", 1);
      hcommComm_t comm = self.join();
      self.meet();  // or one's error reaches another that is still in init
      hcommStream_t stream = nullptr;
      if (on_stream) self.check(hcommStreamCreate(&stream, nullptr), "stream");
      const std::vector<size_t> counts(3, 2);
      std::vector<int> in(6, self.rank()), out(6, -1);
      for (int i = 0; i < 2; i++) {
        hcommResult_t result = hcommAllToAllV(in.data(), counts.data(), nullptr, out.data(),
                                              counts.data(), nullptr, hcommInt32, comm, stream);
        if (on_stream) result = hcommStreamSynchronize(stream);
        self.expect(result == hcommUnsupported, hcommGetLastError(comm));
        self.expect(says(hcommGetLastError(comm), "bruck"), "the algorithm is named");
      }
      self.expect(out == std::vector<int>(6, -1), "nothing written");
      self.meet();
      self.expect(hcommCommDestroy(comm) == hcommUnsupported, "destroy tells of the error");
      if (on_stream) self.check(hcommStreamDestroy(stream), "stream");
    }), (std::vector<int>{0, 0, 0})) << on_stream;
  }
}

// Nothing of a call that has failed is touched by the calls behind it.
TEST(Order, CallsBehindAFailedOneTouchNothing) {
  const std::string wrong =
      run_world(2, {.transports = "shm", .timeout_ms = 300}, [](const Rank& self) {
        if (self.rank == 1) {  // comes to no call; leaves when rank 0 has seen its timeout
          hcommResult_t seen = hcommSuccess;
          while (seen == hcommSuccess) hcommCommGetAsyncError(self.comm, &seen);
          return;
        }
        hcommStream_t stream;
        self.ok(hcommStreamCreate(&stream, nullptr), "stream");
        auto gone = std::make_unique<std::vector<float>>(1 << 18, 1.0f);
        std::vector<float> later(1 << 18, 1.0f);
        const std::vector<float> before = later;
        self.ok(hcommAllReduce(gone->data(), gone->data(), gone->size(), hcommFloat32, hcommSum,
                               self.comm, stream), "queued");
        if (hcommStreamSynchronize(stream) != hcommTimeout) self.findings->add("no timeout");
        gone.reset();
        for (int i = 0; i < 3; i++)
          self.ok(hcommAllReduce(later.data(), later.data(), later.size(), hcommFloat32, hcommSum,
                                 self.comm, stream), "queued");
        if (hcommStreamSynchronize(stream) != hcommTimeout) self.findings->add("no error later");
        if (later != before) self.findings->add("a buffer was touched");
        self.ok(hcommStreamDestroy(stream), "stream");
      });
  EXPECT_TRUE(says(wrong.c_str(), "destroy: timeout")) << wrong;  // destroy tells of it again
  EXPECT_FALSE(says(wrong.c_str(), "touched")) << wrong;
  EXPECT_FALSE(says(wrong.c_str(), "no ")) << wrong;
}

TEST(Order, ATimeoutNamesWhoDidNotCome) {
  const std::string wrong = run_world(4, {.timeout_ms = 700}, [](const Rank& self) {
    hcommResult_t seen = hcommSuccess;
    if (self.rank >= 2) {
      while (seen == hcommSuccess) hcommCommGetAsyncError(self.comm, &seen);
    } else {
      int in = 1, out = 0;
      seen = hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, self.comm, nullptr);
    }
    if (seen != hcommTimeout) self.findings->add("no timeout");
    if (!says(hcommGetLastError(self.comm), "not in this call: ranks 2, 3"))
      self.findings->add(std::string("not told: ") + hcommGetLastError(self.comm));
  });
  EXPECT_FALSE(says(wrong.c_str(), "no timeout")) << wrong;
  EXPECT_FALSE(says(wrong.c_str(), "not told")) << wrong;
}

TEST(Order, SplitsOfAGroupKeepTheirOrder) {
  const std::string wrong = run_world(4, {}, [](const Rank& self) {
    for (int round = 0; round < 10; round++) {
      hcommComm_t halves = nullptr, pairs = nullptr, all = nullptr;
      hcommGroupStart();
      self.ok(hcommCommSplit(self.comm, self.rank / 2, 0, &halves, nullptr), "split");
      self.ok(hcommCommSplit(self.comm, self.rank % 2, 0, &pairs, nullptr), "split");
      self.ok(hcommCommSplit(self.comm, 0, -self.rank, &all, nullptr), "split");
      if (!self.ok(hcommGroupEnd(), "group")) return;
      const auto sum = [&](hcommComm_t comm) {
        int in = self.rank, out = -1;
        self.ok(hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, comm, nullptr), "sum");
        return out;
      };
      if (sum(halves) != (self.rank < 2 ? 1 : 5)) self.findings->add("wrong halves");
      if (sum(pairs) != (self.rank % 2 == 0 ? 2 : 4)) self.findings->add("wrong pairs");
      int rank = -1;
      hcommCommUserRank(all, &rank);
      if (rank != 3 - self.rank || sum(all) != 6) self.findings->add("wrong order");
      for (const hcommComm_t comm : {halves, pairs, all})
        self.ok(hcommCommDestroy(comm), "destroy");
    }
  });
  EXPECT_EQ(wrong, "");
}

// A split of a group holds a turn until the group ends: to wait for it there would be for ever.
TEST(Order, WhatAGroupSplitsIsNotEndedInside) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    hcommComm_t part = nullptr;
    char text[64];
    hcommGroupStart();
    self.ok(hcommCommSplit(self.comm, 0, 0, &part, nullptr), "split");
    for (const hcommResult_t result :
         {hcommCommFinalize(self.comm), hcommCommDestroy(self.comm),
          hcommCommExplain(self.comm, "all_reduce", 1, hcommInt8, text, sizeof text)})
      if (result != hcommInvalidUsage) self.findings->add("not refused");
    if (!says(hcommGetLastError(nullptr), "hcommGroupEnd")) self.findings->add("not told");
    self.ok(hcommGroupEnd(), "end");
    self.ok(hcommCommDestroy(part), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

// Two threads of each rank end groups over the same communicators, named in opposite order, on
// streams that they share or on none.
TEST(Order, THR_GroupsOfTwoThreadsDoNotWaitForOneAnother) {
  for (const bool on_stream : {false, true}) {
    hcommComm_t first[2], second[2];
    ASSERT_EQ(hcommCommInitAll(first, 2, nullptr), hcommSuccess);
    ASSERT_EQ(hcommCommInitAll(second, 2, nullptr), hcommSuccess);
    hcommStream_t stream = nullptr;
    if (on_stream) {
      ASSERT_EQ(hcommStreamCreate(&stream, nullptr), hcommSuccess);
    }
    const auto rounds = [&](bool swapped) {
      int in = 1, out[4] = {};
      for (int i = 0; i < 200; i++) {
        hcommGroupStart();
        for (size_t c = 0; c < 2; c++)
          for (size_t r = 0; r < 2; r++)
            hcommAllReduce(&in, &out[c * 2 + r], 1, hcommInt32, hcommSum,
                           (c == 1) == swapped ? first[r] : second[r], stream);
        EXPECT_EQ(hcommGroupEnd(), hcommSuccess) << hcommGetLastError(nullptr);
      }
      if (on_stream) {
        EXPECT_EQ(hcommStreamSynchronize(stream), hcommSuccess);
      }
      for (const int value : out) EXPECT_EQ(value, 2);
    };
    std::thread other(rounds, true);
    rounds(false);
    other.join();
    if (on_stream) hcommStreamDestroy(stream);
    for (size_t r = 0; r < 2; r++) {
      EXPECT_EQ(hcommCommDestroy(first[r]), hcommSuccess);
      EXPECT_EQ(hcommCommDestroy(second[r]), hcommSuccess);
    }
  }
}

TEST(Order, TooManySendsOfAGroupAreRefused) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    char byte = 0;
    hcommGroupStart();
    for (int i = 0; i < 60001; i++) hcommSend(&byte, 1, hcommInt8, 0, self.comm, nullptr);
    if (hcommGroupEnd() != hcommInvalidArgument) self.findings->add("not refused");
    if (!says(hcommGetLastError(nullptr), "60001 sends")) self.findings->add("not told");
    int in = 3, out = 0;
    self.ok(hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, self.comm, nullptr), "still well");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Order, ACancelledGroupRunsNothingOfItsOwn) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int in = 1, kept = 0, dropped = 0;
    hcommGroupStart();
    self.ok(hcommAllReduce(&in, &kept, 1, hcommInt32, hcommSum, self.comm, nullptr), "kept");
    hcommGroupStart();
    self.ok(hcommAllReduce(&in, &dropped, 1, hcommInt32, hcommSum, self.comm, nullptr), "dropped");
    self.ok(hcommGroupSimulateEnd(), "cancel");
    self.ok(hcommGroupEnd(), "end");
    if (kept != 2 || dropped != 0) self.findings->add("ran the wrong calls");
    hcommGroupStart();
    hcommAllReduce(&in, &dropped, 1, hcommInt32, hcommSum, nullptr, nullptr);
    if (hcommGroupSimulateEnd() != hcommInvalidArgument) self.findings->add("could not have run");
    if (hcommGroupSimulateEnd() != hcommInvalidUsage) self.findings->add("no group is open");
    // The first error of a group comes with its own text.
    hcommGroupStart();
    hcommAllReduce(&in, &dropped, 1, hcommInt32, static_cast<hcommRedOp_t>(99), self.comm, nullptr);
    hcommAllReduce(&in, &dropped, 1, hcommInt32, hcommSum, nullptr, nullptr);
    if (hcommGroupEnd() != hcommInvalidArgument) self.findings->add("no error");
    if (says(hcommGetLastError(nullptr), "comm is NULL")) self.findings->add("the second's text");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
