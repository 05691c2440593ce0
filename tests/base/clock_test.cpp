// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

#include <climits>

namespace hcomm {
namespace {

// The ticks of at least 20 ms by the clock, both ends read as the quickest of several pairs.
double rate_over_20_ms() {
  struct Moment {
    int64_t ns;
    uint64_t ticks;
  };
  const auto read = [] {
    Moment best{};
    for (uint64_t i = 0, least = UINT64_MAX; i < 100; i++) {
      const uint64_t before = ticks();
      const int64_t ns = now_ns();
      const uint64_t taken = ticks() - before;
      if (taken < least) best = {ns, before + taken / 2};
      least = std::min(least, taken);
    }
    return best;
  };
  const Moment start = read();
  while (now_ns() - start.ns < 20'000'000) {
  }
  const Moment end = read();
  return static_cast<double>(end.ticks - start.ticks) / static_cast<double>(end.ns - start.ns);
}

TEST(Clock, TicksAreTime) {
  EXPECT_NEAR(ticks_per_ns() / rate_over_20_ms(), 1, 0.01);
  EXPECT_EQ(ticks_per_ns(), ticks_per_ns());  // measured once
}

TEST(Clock, TextIsUtc) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(utc_text(1'769'860'800'123'456'789), "2026-01-31T12:00:00.123456Z");
}

TEST(Clock, Deadlines) {
  EXPECT_TRUE(Deadline().endless());
  EXPECT_FALSE(Deadline().passed());
  EXPECT_EQ(Deadline().left_ms(), INT_MAX);
  EXPECT_TRUE(Deadline::after_ms(0).endless());
  const Deadline late = Deadline::after_ms(1'000'000);
  EXPECT_FALSE(late.passed());
  EXPECT_LE(late.left_ms(), 1'000'000);
  EXPECT_GT(late.left_ms(), 900'000);
}

}  // namespace
}  // namespace hcomm
