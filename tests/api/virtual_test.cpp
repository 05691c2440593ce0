// SPDX-License-Identifier: Apache-2.0
// Virtual communicators: the same ranks once more, with an order and a priority of their own.
#include <gtest/gtest.h>

#include "api/expect.h"

namespace hcomm::test {
namespace {

struct Lanes {
  explicit Lanes(const Rank& rank) : self(rank) {
    self.ok(hcommCommVirtual(self.comm, "forward", &forward, nullptr), "forward");
    self.ok(hcommCommVirtual(self.comm, "backward", &backward, nullptr), "backward");
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
  }
  ~Lanes() {
    self.ok(hcommStreamDestroy(stream), "stream");
    self.ok(hcommCommDestroy(forward), "forward");
    self.ok(hcommCommDestroy(backward), "backward");
  }
  const Rank& self;
  hcommComm_t forward = nullptr, backward = nullptr;
  hcommStream_t stream = nullptr;
};

hcommResult_t sum(std::vector<float>& data, hcommComm_t comm, hcommStream_t stream) {
  return hcommAllReduce(data.data(), data.data(), data.size(), hcommFloat32, hcommSum, comm,
                        stream);
}

class Virtual : public Everywhere {};

TEST_P(Virtual, SmallOnesPassALargeOne) {
  const std::string wrong = run_world(3, {.transports = transport()}, [](const Rank& self) {
    Lanes lanes(self);
    std::vector<float> gradient(1 << 20, 1), activation(1000);
    self.ok(sum(gradient, lanes.backward, lanes.stream), "backward");
    for (int i = 0; i < 20; i++) {
      activation.assign(activation.size(), static_cast<float>(self.rank + i));
      self.ok(sum(activation, lanes.forward, nullptr), "forward");
      expect(self, activation == std::vector<float>(1000, static_cast<float>(3 + 3 * i)), "sums");
    }
    self.ok(hcommStreamSynchronize(lanes.stream), "synchronise");
    expect(self, gradient == std::vector<float>(1 << 20, 3), "the gradient's sum");
  });
  EXPECT_EQ(wrong, "");
}
HCOMM_EVERYWHERE(Virtual);

// Rank 0 is in the higher one, which holds the lower one there; rank 1 comes to it only after the
// lower one has ended.
TEST(VirtualOrder, AHigherOneThatWaitsLetsTheLowerOnePass) {
  const std::string wrong = run_world(2, {.timeout_ms = 20'000}, [](const Rank& self) {
    Lanes lanes(self);
    std::vector<float> gradient(1 << 20, 1), activation(1000, 1);
    self.ok(sum(gradient, lanes.backward, lanes.stream), "backward");
    if (self.rank == 1) self.ok(hcommStreamSynchronize(lanes.stream), "the lower one first");
    self.ok(sum(activation, lanes.forward, nullptr), "forward");
    self.ok(hcommStreamSynchronize(lanes.stream), "synchronise");
  });
  EXPECT_EQ(wrong, "");
}

TEST(VirtualOrder, EachHasItsOwn) {
  const std::string wrong = run_world(2, {.timeout_ms = 20'000}, [](const Rank& self) {
    Lanes lanes(self);
    std::vector<float> a(100, 1), b(100, 2), c(100, 3);
    hcommStream_t other;
    self.ok(hcommStreamCreate(&other, nullptr), "stream");
    const auto both = [&](hcommComm_t first, hcommComm_t second) {
      self.ok(sum(a, first, lanes.stream), "the first");
      self.ok(sum(b, second, other), "the second");
    };
    if (self.rank == 0)
      both(lanes.forward, lanes.backward);
    else
      both(lanes.backward, lanes.forward);
    self.ok(sum(c, self.comm, nullptr), "the one that they are made of");
    self.ok(hcommStreamSynchronize(lanes.stream), "synchronise");
    self.ok(hcommStreamSynchronize(other), "synchronise");
    self.ok(hcommStreamDestroy(other), "stream");
    expect(self, a == std::vector<float>(100, 3) && b == a && c[0] == 6, "the sums");
  });
  EXPECT_EQ(wrong, "");
}

TEST(VirtualFailures, RanksThatDifferAreNamed) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    hcommComm_t made = nullptr;
    expect(self,
           hcommCommVirtual(self.comm, self.rank == 0 ? "forward" : "backward", &made, nullptr),
           hcommInvalidUsage, "two names");
    for (const char* part : {"'forward' of priority 1", "'backward' of priority 0", "rank 1 "})
      expect(self, says(hcommGetLastError(nullptr), part), part);
    expect(self, made == nullptr, "nothing made");
  });
  EXPECT_EQ(wrong, "");
}

TEST(VirtualFailures, WhatCannotBeIsRefused) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    hcommComm_t made = nullptr;
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    expect(self, hcommCommVirtual(self.comm, nullptr, &made, nullptr), hcommInvalidArgument,
           "no name");
    expect(self, hcommCommVirtual(self.comm, "forward", nullptr, nullptr), hcommInvalidArgument,
           "nothing to store in");
    for (const int priority : {-1, 4}) {
      config.priority = priority;
      expect(self, hcommCommVirtual(self.comm, "forward", &made, &config), hcommInvalidArgument,
             "a priority that is none");
    }
    config.priority = 3;
    expect(self, hcommCommSplit(self.comm, 0, 0, &made, &config), hcommUnsupported,
           "a priority of a split");
    self.ok(hcommCommVirtual(self.comm, "urgent", &made, &config), "a priority given");
    const char* name = nullptr;
    self.ok(hcommCommName(made, &name), "name");
    expect(self, says(name, "urgent"), "its name");
    self.ok(hcommCommDestroy(made), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
