// SPDX-License-Identifier: Apache-2.0
// Communicators that are joined in the background: hcommConfig_t.blocking = 0.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "hcomm/hcomm.h"

namespace hcomm::test {
namespace {

using Clock = std::chrono::steady_clock;

hcommConfig_t background(int init_timeout_ms) {
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.init_timeout_ms = init_timeout_ms;
  return config;
}

hcommResult_t settled(hcommComm_t comm) {
  hcommResult_t result = hcommInProgress;
  while (result == hcommInProgress) {
    EXPECT_EQ(hcommCommGetAsyncError(comm, &result), hcommSuccess);
    std::this_thread::yield();
  }
  return result;
}

// One thread makes both ranks, which wait for one another.
TEST(NonBlocking, OneThreadJoinsTwoRanks) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  const hcommConfig_t config = background(20'000);
  hcommComm_t comms[2];
  ASSERT_EQ(hcommCommInitRankConfig(&comms[0], 2, id, 0, &config), hcommInProgress);
  float in = 1, out[2] = {};
  EXPECT_EQ(hcommAllReduce(&in, out, 1, hcommFloat32, hcommSum, comms[0], nullptr),
            hcommInvalidUsage);
  EXPECT_NE(std::strstr(hcommGetLastError(nullptr), "hcommCommGetAsyncError"), nullptr);
  ASSERT_EQ(hcommCommInitRankConfig(&comms[1], 2, id, 1, &config), hcommInProgress);
  for (const hcommComm_t comm : comms) ASSERT_EQ(settled(comm), hcommSuccess);
  hcommGroupStart();
  for (int r = 0; r < 2; r++)
    hcommAllReduce(&in, &out[r], 1, hcommFloat32, hcommSum, comms[r], nullptr);
  EXPECT_EQ(hcommGroupEnd(), hcommSuccess);
  EXPECT_EQ(out[0] + out[1], 4);
  hcommComm_t child = nullptr;
  EXPECT_EQ(hcommCommSplit(comms[0], 0, 0, &child, &config), hcommUnsupported);
  for (const hcommComm_t comm : comms) EXPECT_EQ(hcommCommDestroy(comm), hcommSuccess);
}

TEST(NonBlocking, WhatFailsIsToldWhenAsked) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  const hcommConfig_t config = background(300);
  hcommComm_t comm;
  ASSERT_EQ(hcommCommInitRankConfig(&comm, 2, id, 0, &config), hcommInProgress);
  EXPECT_EQ(settled(comm), hcommTimeout);
  EXPECT_NE(std::strstr(hcommGetLastError(comm), "missing: rank 1"), nullptr)
      << hcommGetLastError(comm);
  int count = 0;
  EXPECT_EQ(hcommCommCount(comm, &count), hcommTimeout);
  EXPECT_EQ(hcommCommDestroy(comm), hcommTimeout);
}

TEST(NonBlocking, AbortAndDestroyEndAJoinThatWaits) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  const hcommConfig_t config = background(3'000);
  hcommComm_t comm;
  ASSERT_EQ(hcommCommInitRankConfig(&comm, 2, id, 0, &config), hcommInProgress);
  const auto begin = Clock::now();
  EXPECT_EQ(hcommCommAbort(comm), hcommSuccess);
  EXPECT_EQ(settled(comm), hcommAborted);
  EXPECT_EQ(hcommCommDestroy(comm), hcommSuccess);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
}

TEST(NonBlocking, WhatCannotBeIsRefusedAtOnce) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  hcommConfig_t config = background(300);
  hcommComm_t comm;
  EXPECT_EQ(hcommCommInitRankConfig(&comm, 2, id, 2, &config), hcommInvalidArgument);
  config.blocking = 2;
  EXPECT_EQ(hcommCommInitRankConfig(&comm, 2, id, 0, &config), hcommInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
}  // namespace hcomm::test
