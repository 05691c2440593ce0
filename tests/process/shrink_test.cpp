// SPDX-License-Identifier: Apache-2.0
// A communicator of the ranks that are left.
#include "process/processes.h"

namespace hcomm::test {
namespace {

constexpr int kDies = 2, kKilled = 128 + SIGKILL;

// Sums rank + 1 of the job over all ranks of comm.
int sum_over(const Process& self, hcommComm_t comm) {
  std::vector<int> in(5000, self.rank() + 1), out(in.size());
  self.check(hcommAllReduce(in.data(), out.data(), in.size(), hcommInt32, hcommSum, comm, nullptr),
             "sum", comm);
  for (const int value : out) self.expect(value == out[0], "one sum everywhere");
  return out[0];
}

TEST(Shrink, TheLivingGoOnWithoutTheDead) {
  for (const char* transport : {"shm", "tcp"}) {
    EXPECT_EQ(run_processes(5, [&](const Process& self) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = transport;
      hcommComm_t comm = self.join(&config), left = nullptr, fewer = nullptr;
      self.expect(sum_over(self, comm) == 15, "the sum of five");
      if (self.rank() == kDies) kill(getpid(), SIGKILL);
      float in = 1, out = 0;
      const hcommResult_t result =
          hcommAllReduce(&in, &out, 1, hcommFloat32, hcommSum, comm, nullptr);
      self.expect(result == hcommRemoteError, "the death is an error");
      self.check(hcommCommShrink(comm, &kDies, 1, &left, nullptr, HCOMM_SHRINK_ABORT), "shrink");
      self.check(hcommCommDestroy(comm) == hcommRemoteError ? hcommSuccess : hcommInternalError,
                 "destroy of the broken one tells of its error");
      int rank = -1, count = 0;
      hcommCommUserRank(left, &rank);
      hcommCommCount(left, &count);
      self.expect(count == 4 && rank == self.rank() - (self.rank() > kDies), "ranks in order");
      self.expect(sum_over(self, left) == 12, "the sum of four");
      // Again, of a communicator that is well: its rank 1 stays outside.
      const int outside = 1;
      if (rank != outside) {
        self.check(hcommCommShrink(left, &outside, 1, &fewer, nullptr, HCOMM_SHRINK_DEFAULT),
                   "shrink of the shrunk");
        self.expect(sum_over(self, fewer) == 10, "the sum of three");
        self.check(hcommCommDestroy(fewer), "destroy");
      }
      self.expect(sum_over(self, left) == 12, "the parent still works");
      self.check(hcommCommDestroy(left), "destroy");
    }), (std::vector<int>{0, 0, kKilled, 0, 0})) << transport;
  }
}

TEST(Shrink, WhoWasExcludedOnceMayComeAgain) {
  EXPECT_EQ(run_processes(3, [](const Process& self) {
    hcommComm_t comm = self.join();
    for (const int outside : {2, 1, 0, 2, 2}) {
      hcommComm_t left = nullptr;
      if (self.rank() == outside) continue;
      self.check(hcommCommShrink(comm, &outside, 1, &left, nullptr, HCOMM_SHRINK_DEFAULT),
                 "shrink");
      self.expect(sum_over(self, left) == 6 - (outside + 1), "the sum of those who stay");
      self.check(hcommCommDestroy(left), "destroy");
    }
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (std::vector<int>{0, 0, 0}));
}

TEST(Shrink, WhoDoesNotCallIsNamed) {
  EXPECT_EQ(run_processes(3, [&](const Process& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    hcommComm_t comm = self.join(&config), left = nullptr;
    config.init_timeout_ms = 300;
    const int outside = 2;
    if (self.rank() == 0) {
      self.expect(hcommCommShrink(comm, &outside, 1, &left, &config, HCOMM_SHRINK_DEFAULT) ==
                      hcommTimeout, "a timeout");
      self.expect(std::strstr(hcommGetLastError(nullptr), "rank 1") != nullptr, "rank 1 named");
      self.expect(left == nullptr, "no communicator");
    }
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (std::vector<int>{0, 0, 0}));
}

TEST(Shrink, ListsThatCannotBeAreRefused) {
  EXPECT_EQ(run_processes(2, [&](const Process& self) {
    hcommComm_t comm = self.join(), left = nullptr;
    const int mine = self.rank(), none = 2, below = -1;
    const auto refused = [&](const int* list, int count, hcommComm_t* made, int flags) {
      return hcommCommShrink(comm, list, count, made, nullptr, flags) == hcommInvalidArgument;
    };
    self.expect(refused(&mine, 1, &left, 0), "oneself");
    self.expect(refused(&none, 1, &left, 0), "a rank that does not exist");
    self.expect(refused(&below, 1, &left, 0), "a rank below 0");
    self.expect(refused(nullptr, 1, &left, 0), "no list");
    self.expect(refused(&none, -1, &left, 0), "less than none");
    self.expect(refused(&none, 0, nullptr, 0), "no place for the result");
    self.expect(refused(&none, 0, &left, 2), "unknown flags");
    self.sum(comm);
    self.check(hcommCommShrink(comm, nullptr, 0, &left, nullptr, 0), "nobody excluded");
    self.sum(left);
    self.check(hcommCommDestroy(left), "destroy");
    self.check(hcommCommDestroy(comm), "destroy");
  }), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace hcomm::test
