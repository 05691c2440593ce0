// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic.h"

#include <gtest/gtest.h>

namespace hcomm::engine {
namespace {

constexpr int64_t kHour_ns = 3'600'000'000'000;

TEST(Traffic, OnlyAHigherPriorityThatMovesHolds) {
  Traffic traffic(kHour_ns);
  for (int priority = 0; priority < kPriorities; priority++) EXPECT_FALSE(traffic.holds(priority));
  traffic.begin(1);
  EXPECT_TRUE(traffic.holds(0));
  for (int priority = 1; priority < kPriorities; priority++) EXPECT_FALSE(traffic.holds(priority));
  traffic.begin(3);
  EXPECT_TRUE(traffic.holds(1));
  EXPECT_TRUE(traffic.holds(2));
  EXPECT_FALSE(traffic.holds(3));
  traffic.end(3);
  traffic.end(1);
  for (int priority = 0; priority < kPriorities; priority++) EXPECT_FALSE(traffic.holds(priority));
}

TEST(Traffic, TwoOfOnePriorityHoldUntilBothHaveEnded) {
  Traffic traffic(kHour_ns);
  traffic.begin(2);
  traffic.begin(2);
  traffic.end(2);
  EXPECT_TRUE(traffic.holds(0));
  traffic.end(2);
  EXPECT_FALSE(traffic.holds(0));
}

TEST(Traffic, WhoWaitsWithoutMovingHoldsNobody) {
  Traffic traffic(0);
  traffic.begin(1);
  traffic.moved(1);
  EXPECT_FALSE(traffic.holds(0));
}

}  // namespace
}  // namespace hcomm::engine
