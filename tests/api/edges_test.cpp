// SPDX-License-Identifier: Apache-2.0
// Corners of the API: operators on one rank and between gaps, ends of life, names, differences that
// are seen late.
#include <sys/mman.h>
#include <unistd.h>

#include "api/expect.h"

namespace hcomm::test {
namespace {

TEST(Edges, NUM_11_PreMulSumInPlaceOnOneRank) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    const int two = 2;
    int a = 5, b = 5, c = 5;
    hcommRedOp_t op;
    self.ok(hcommRedOpCreatePreMulSum(&op, &two, hcommInt32, self.comm), "operator");
    self.ok(hcommAllReduce(&a, &a, 1, hcommInt32, op, self.comm, nullptr), "allreduce");
    self.ok(hcommReduce(&b, &b, 1, hcommInt32, op, 0, self.comm, nullptr), "reduce");
    self.ok(hcommReduceScatter(&c, &c, 1, hcommInt32, op, self.comm, nullptr), "reducescatter");
    expect(self, a == 10 && b == 10 && c == 10,
           "10, 10, 10; got " + std::to_string(a) + ", " + std::to_string(b) + ", " +
               std::to_string(c));
  });
  EXPECT_EQ(wrong, "");
}

TEST(Edges, PreMulSumReadsNoGapBetweenBlocks) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    const auto page = static_cast<size_t>(getpagesize());
    auto* const memory = static_cast<std::byte*>(mmap(nullptr, 5 * page, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (const size_t gap : {0, 2, 4}) mprotect(memory + gap * page, page, PROT_NONE);
    const size_t in_page = page / sizeof(int), counts[] = {5, 7};
    const size_t displs[] = {2 * in_page - counts[0], 3 * in_page};  // next to the gap
    int* const send = reinterpret_cast<int*>(memory);
    for (size_t block = 0; block < 2; block++)
      for (size_t i = 0; i < counts[block]; i++) send[displs[block] + i] = static_cast<int>(i);
    const int three = 3;
    int out[7] = {};
    hcommRedOp_t op;
    self.ok(hcommRedOpCreatePreMulSum(&op, &three, hcommInt32, self.comm), "operator");
    self.ok(hcommReduceScatterV(send, out, counts, displs, hcommInt32, op, self.comm, nullptr),
            "reducescatterv");
    for (size_t i = 0; i < counts[self.rank]; i++)
      expect(self, out[i] == 6 * static_cast<int>(i), "six times the index");
    munmap(memory, 5 * page);
  });
  EXPECT_EQ(wrong, "");
}

// A call that was right is not checked again in the same words; what makes it wrong must be seen.
TEST(Edges, ARepeatedCallIsRefusedWhenItHasBecomeWrong) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    const int two = 2;
    int a = 1, out = 0;
    const auto sum = [&](hcommRedOp_t op, hcommComm_t comm) {
      return hcommAllReduce(&a, &out, 1, hcommInt32, op, comm, nullptr);
    };
    const auto from_rank_1 = [&](hcommComm_t comm) {
      return hcommBroadcast(&a, &out, 1, hcommInt32, 1, comm, nullptr);
    };
    hcommRedOp_t op;
    self.ok(hcommRedOpCreatePreMulSum(&op, &two, hcommInt32, self.comm), "operator");
    for (int i = 0; i < 2; i++) self.ok(sum(op, self.comm), "with an operator");
    self.ok(hcommRedOpDestroy(op, self.comm), "destroy it");
    expect(self, sum(op, self.comm), hcommInvalidArgument, "an operator that is gone");

    self.ok(from_rank_1(self.comm), "root 1 of two ranks");
    hcommComm_t alone = nullptr;
    self.ok(hcommCommSplit(self.comm, self.rank, 0, &alone, nullptr), "split");
    expect(self, from_rank_1(alone), hcommInvalidArgument, "root 1 of one rank");
    for (int i = 0; i < 2; i++) self.ok(sum(hcommSum, alone), "alone");
    self.ok(hcommCommFinalize(alone), "finalize");
    expect(self, sum(hcommSum, alone), hcommInvalidUsage, "after finalize");
    self.ok(hcommCommDestroy(alone), "destroy");

    size_t counts[] = {1, 1};
    int both[2] = {};
    const auto gather = [&] {
      return hcommAllGatherV(&a, both, counts, nullptr, hcommInt32, self.comm, nullptr);
    };
    for (int i = 0; i < 2; i++) self.ok(gather(), "counts of one");
    counts[0] = counts[1] = SIZE_MAX / 8;
    expect(self, gather(), hcommInvalidArgument, "counts that have grown");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Edges, ARepeatedCallInAGroupWaitsForItsEnd) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = 0;
    self.ok(sum_one(self, &out), "once");
    out = -1;
    self.ok(hcommGroupStart(), "start");
    self.ok(sum_one(self, &out), "again, in a group");
    expect(self, out == -1, "that nothing has run");
    self.ok(hcommGroupEnd(), "end");
    expect(self, out == 2, "2; got " + std::to_string(out));
  });
  EXPECT_EQ(wrong, "");
}

TEST(Edges, AnInnerSimulatedGroupRunsNothing) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = -1;
    hcommGroupStart();
    hcommGroupStart();
    self.ok(sum_one(self, &out), "in the inner group");
    self.ok(hcommGroupSimulateEnd(), "simulate the inner");
    self.ok(hcommGroupEnd(), "the outer end");
    expect(self, out == -1, "that nothing ran");
  });
  EXPECT_EQ(wrong, "");
}

// "Afterwards only destroy is allowed" (hcomm.h).
TEST(Edges, AfterFinalizeNothingIsMade) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    self.ok(hcommCommFinalize(self.comm), "finalize");
    hcommComm_t child = nullptr;
    const int one = 1;
    hcommRedOp_t op;
    expect(self, hcommCommSplit(self.comm, 0, 0, &child, nullptr), hcommInvalidUsage, "split");
    hcommCommDestroy(child);
    child = nullptr;
    expect(self, hcommCommShrink(self.comm, nullptr, 0, &child, nullptr, 0), hcommInvalidUsage,
           "shrink");
    hcommCommDestroy(child);
    expect(self, hcommRedOpCreatePreMulSum(&op, &one, hcommInt32, self.comm), hcommInvalidUsage,
           "an operator");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Edges, DeregisterKnowsItsHandles) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    char memory[64], other[64];
    void* handle = nullptr;
    self.ok(hcommCommRegister(self.comm, memory, 64, &handle), "register");
    expect(self, hcommCommDeregister(self.comm, other), hcommInvalidArgument, "another handle");
    self.ok(hcommCommDeregister(self.comm, handle), "deregister");
    expect(self, hcommCommDeregister(self.comm, handle), hcommInvalidArgument, "once more");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Edges, LEK_05_ANameOf4KiB) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  const std::string name(4096, 'g');
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.name = name.c_str();
  hcommComm_t comm = nullptr;
  EXPECT_EQ(hcommCommInitRankConfig(&comm, 1, id, 0, &config), hcommSuccess)
      << hcommGetLastError(nullptr);
  EXPECT_EQ(hcommCommDestroy(comm), hcommSuccess);
}

// MIS-05, MIS-07: a rank whose part was done before the difference was seen: what it called is told
// with its next call.
void expect_both_sides(const Rank& self, hcommResult_t result, const char* usual,
                       const char* other) {
  if (result == hcommSuccess) result = hcommBarrier(self.comm, nullptr);
  expect(self, result, hcommInvalidUsage, "the call or the next one");
  const char* const text = hcommGetLastError(self.comm);
  expect(self, says(text, usual) && says(text, other),
         std::string(usual) + " and " + other + " in: " + text);
}

TEST(Edges, MIS_05_AnOperatorOfALeafIsNamed) {
  for (const char* transport : {"shm", "tcp"}) {
    const std::string wrong = run_world(3, {.transports = transport}, [](const Rank& self) {
      float in[4] = {}, out[4];
      expect_both_sides(self,
                        hcommReduce(in, out, 4, hcommFloat32, self.rank == 1 ? hcommMax : hcommSum,
                                    0, self.comm, nullptr),
                        "op=sum", "op=max");
    });
    EXPECT_FALSE(says(wrong.c_str(), "expected")) << wrong;
  }
}

TEST(Edges, MIS_07_TwoRootsThatSendAreNamed) {
  for (const char* transport : {"shm", "tcp"}) {
    const std::string wrong = run_world(3, {.transports = transport}, [](const Rank& self) {
      float in[4] = {}, out[4];
      expect_both_sides(self,
                        hcommBroadcast(in, out, 4, hcommFloat32, self.rank == 1 ? 1 : 0, self.comm,
                                       nullptr),
                        "root=0", "root=1");
    });
    EXPECT_FALSE(says(wrong.c_str(), "expected")) << wrong;
  }
}

// Lengths of a V form differ between ranks: no difference of the calls, however late one is.
TEST(Edges, LateRanksOfVFormsAreNoMismatch) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    const size_t counts[] = {1, 2, 3};
    const auto rank = static_cast<size_t>(self.rank);
    int in[3] = {7, 7, 7}, out[6] = {};
    const auto be_late = [&](int who) {
      if (self.rank == who) std::this_thread::sleep_for(std::chrono::milliseconds(700));
    };
    be_late(2);
    self.ok(hcommAllGatherV(in, out, counts, nullptr, hcommInt32, self.comm, nullptr), "all");
    expect(self, out[0] == 7 && out[5] == 7, "what was sent");
    be_late(0);
    self.ok(hcommGatherV(in, counts[rank], out, counts, nullptr, hcommInt32, 0, self.comm, nullptr),
            "gather");
    self.ok(hcommBarrier(self.comm, nullptr), "barrier");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
