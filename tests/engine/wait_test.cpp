// SPDX-License-Identifier: Apache-2.0
// The loop that waits, and the order of streams.
#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "engine/drive.h"
#include "engine/stream.h"

namespace hcomm::engine {
namespace {

constexpr int64_t kMs = 1'000'000;

// Moves for some time, then waits until it has slept once.
class Busy final : public Party {
 public:
  explicit Busy(int64_t busy_ns) : until_ns_(now_ns() + busy_ns) {}
  bool advance() override { return now_ns() < until_ns_; }
  bool finished() const override { return slept_ns_ != 0; }
  void idle(int64_t passed_ns, int64_t since_progress_ns) override {
    if (first_idle_ns_ == 0) first_idle_ns_ = now_ns();
    begin_ns_ += passed_ns;
    progress_ns_ = since_progress_ns;
  }
  bool prepare_sleep(std::vector<pollfd>&, int&) override {
    slept_ns_ = now_ns();
    return false;
  }
  void after_sleep() override {}

  int64_t slept_after_ns() const { return slept_ns_ - until_ns_; }
  int64_t begin_ns_ = 0, progress_ns_ = -1, first_idle_ns_ = 0;

 private:
  const int64_t until_ns_;
  int64_t slept_ns_ = 0;
};

// However long it moved before, a wait sleeps after its patience: not after as long again.
TEST(Wait, SleepsSoonAfterALongMove) {
  Busy first(0), busy(700 * kMs);
  Party* both[] = {&first, &busy};
  drive(both, {.crowded = true, .spin_ns = kMs});
  EXPECT_LT(busy.slept_after_ns(), 500 * kMs);
  EXPECT_GE(busy.progress_ns_, kMs);
  EXPECT_GE(busy.begin_ns_, busy.progress_ns_);
}

// Nothing ever moves; one look in many takes long, as where another program takes the core.
class Preempted final : public Party {
 public:
  bool advance() override {
    if (++rounds_ % 5'000 == 0)
      for (const int64_t until = now_ns() + 5 * kMs; now_ns() < until;) {
      }
    return false;
  }
  bool finished() const override { return slept_ || rounds_ > 200'000; }
  void idle(int64_t, int64_t) override {}
  bool prepare_sleep(std::vector<pollfd>&, int&) override {
    slept_ = true;
    return false;
  }
  void after_sleep() override {}
  bool slept() const { return slept_; }

 private:
  uint64_t rounds_ = 0;
  bool slept_ = false;
};

// Its patience is an hour.
TEST(Wait, WhoIsPreemptedLeavesTheCoreToOthers) {
  Preempted party;
  Party* only = &party;
  drive({&only, 1}, {.spin_ns = 3'600'000 * kMs});
  EXPECT_TRUE(party.slept());
}

TEST(Stream, ItsWorkerSleepsSoon) {
  Stream stream;
  Busy party(0);
  stream.enqueue([&] {
    Party* only = &party;
    drive({&only, 1}, {.spin_ns = 3'600'000 * kMs});
    return Code::ok;
  });
  EXPECT_EQ(stream.synchronize(), Code::ok);
  EXPECT_GT(party.slept_after_ns(), 0);
}

TEST(Stream, AnEventStandsForItsLastMarkAndWaitersForTheirs) {
  Stream slow, fast, third;
  auto gate = std::make_shared<Mark>();
  Event event;
  slow.wait_for(gate);
  event.record(slow.mark());
  bool passed = false;
  third.wait_for(event.last());
  third.enqueue([&] {
    passed = gate->passed();
    return Code::ok;
  });
  event.record(fast.mark());  // of another stream, at once: no news for the third
  EXPECT_EQ(fast.synchronize(), Code::ok);
  EXPECT_TRUE(event.done());
  EXPECT_FALSE(third.idle());
  gate->pass();
  EXPECT_EQ(third.synchronize(), Code::ok);
  EXPECT_TRUE(passed);
  event.record(nullptr);
  EXPECT_TRUE(event.done());
}

TEST(Stream, ATaskThatThrowsIsAnErrorAndNoEnd) {
  Stream stream;
  stream.enqueue([]() -> Code { throw Error(Code::unsupported, "not this"); });
  stream.enqueue([]() -> Code { throw std::bad_alloc(); });
  EXPECT_EQ(stream.synchronize(), Code::unsupported);
  EXPECT_EQ(stream.synchronize(), Code::ok);
}

}  // namespace
}  // namespace hcomm::engine
