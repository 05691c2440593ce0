// SPDX-License-Identifier: Apache-2.0
// Calls that differ between ranks (MIS-01 to MIS-07), and calls that one rank has wrong: the first
// are an error on all ranks that names both sides, the second leave the communicator usable.
#include <functional>

#include "api/expect.h"

namespace hcomm::test {
namespace {

struct Difference {
  const char* name;
  std::function<hcommResult_t(const Rank&, bool odd)> call;
  const char *usual, *other;  // both are in the text
};

thread_local float g_in[64], g_out[64];  // of a rank; what is in them does not matter here

const Difference kDifferences[] = {
    {"MIS_01_Counts",
     [](const Rank& self, bool odd) {
       return hcommAllReduce(g_in, g_out, odd ? 1 : 2, hcommFloat32, hcommSum, self.comm, nullptr);
     },
     "count=2", "count=1"},
    {"MIS_03_TypesOfEqualSize",
     [](const Rank& self, bool odd) {
       return hcommAllReduce(g_in, g_out, 3, odd ? hcommInt32 : hcommFloat32, hcommSum, self.comm,
                             nullptr);
     },
     "float32", "int32"},
    {"MIS_03_TypesOfOtherSize",
     [](const Rank& self, bool odd) {
       return hcommAllReduce(g_in, g_out, 1, odd ? hcommFloat32 : hcommBfloat16, hcommSum,
                             self.comm, nullptr);
     },
     "bfloat16", "float32"},
    {"MIS_05_Operators",
     [](const Rank& self, bool odd) {
       return hcommAllReduce(g_in, g_out, 4, hcommFloat32, odd ? hcommMax : hcommSum, self.comm,
                             nullptr);
     },
     "op=sum", "op=max"},
    {"MIS_05_OperatorsOfALeaf",  // its part is done when it has sent
     [](const Rank& self, bool odd) {
       return hcommReduce(g_in, g_out, 4, hcommFloat32, odd ? hcommMax : hcommSum, 0, self.comm,
                          nullptr);
     },
     "rank 1", "rank 1"},
    {"MIS_05_Collectives",
     [](const Rank& self, bool odd) {
       return odd ? hcommBroadcast(g_in, g_out, 8, hcommFloat32, 0, self.comm, nullptr)
                  : hcommAllReduce(g_in, g_out, 8, hcommFloat32, hcommSum, self.comm, nullptr);
     },
     "all_reduce", "broadcast"},
    {"MIS_07_Roots",
     [](const Rank& self, bool odd) {
       return hcommReduce(g_in, g_out, 8, hcommFloat32, hcommSum, odd ? 1 : 0, self.comm, nullptr);
     },
     "root=0", "root=1"},
    {"MIS_07_RootsThatSend",  // their part is done when they have sent
     [](const Rank& self, bool odd) {
       return hcommBroadcast(g_in, g_out, 8, hcommFloat32, odd ? 1 : 0, self.comm, nullptr);
     },
     "rank 1", "rank 1"},
    {"MIS_07_Order",
     [](const Rank& self, bool odd) {
       const auto gather = [&] {
         return hcommAllGather(g_in, g_out, 4, hcommFloat32, self.comm, nullptr);
       };
       const auto barrier = [&] { return hcommBarrier(self.comm, nullptr); };
       if (const hcommResult_t first = odd ? barrier() : gather(); first != hcommSuccess)
         return first;
       return odd ? gather() : barrier();
     },
     "all_gather", "barrier"}};

class Mismatch : public testing::TestWithParam<std::tuple<const char*, Difference>> {};

TEST_P(Mismatch, IsAnErrorOnAllRanksThatNamesBothSides) {
  const char* const transport = std::get<0>(GetParam());
  const Difference& difference = std::get<1>(GetParam());
  const auto begin = Clock::now();
  const std::string wrong =
      run_world(3, {.transports = transport, .timeout_ms = 20000}, [&](const Rank& self) {
        // A rank whose part is done learns of it in its next call.
        hcommResult_t result = difference.call(self, self.rank == 1);
        if (result == hcommSuccess) result = hcommBarrier(self.comm, nullptr);
        expect(self, result, hcommInvalidUsage, "the call");
        const char* text = hcommGetLastError(self.comm);
        expect(self, says(text, difference.usual) && says(text, difference.other),
               std::string(difference.usual) + " and " + difference.other + " in: " + text);
        expect(self, says(text, "rank 1"), std::string("rank 1 in: ") + text);
        expect(self, hcommBarrier(self.comm, nullptr), hcommInvalidUsage, "the error stays");
      });
  std::string unexpected;  // destroy returns the error too
  for (size_t at = 0; at < wrong.size(); at = wrong.find('\n', at) + 1)
    if (const std::string line = wrong.substr(at, wrong.find('\n', at) - at);
        !says(line.c_str(), ": destroy: "))
      unexpected += line + "\n";
  EXPECT_EQ(unexpected, "");
  EXPECT_LT(seconds_since(begin), 15);
}

INSTANTIATE_TEST_SUITE_P(Calls, Mismatch,
                         testing::Combine(testing::Values("shm", "tcp"),
                                          testing::ValuesIn(kDifferences)),
                         [](const auto& place) {
                           return std::string(std::get<1>(place.param).name) + "_" +
                                  std::get<0>(place.param);
                         });

// V counts that differ: gather(v) and all-to-all(v) learn it from the lengths of messages.
using VCall = hcommResult_t (*)(const Rank& self, const size_t* counts);

class VMismatch : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(VMismatch, MIS_01_IsAnErrorOnAllRanks) {
  static constexpr VCall kCalls[] = {
      [](const Rank& self, const size_t* counts) {
        return hcommAllGatherV(g_in, g_out, counts, nullptr, hcommFloat32, self.comm, nullptr);
      },
      [](const Rank& self, const size_t* counts) {
        return hcommReduceScatterV(g_in, g_out, counts, nullptr, hcommFloat32, hcommSum, self.comm,
                                   nullptr);
      },
      [](const Rank& self, const size_t* counts) {
        return hcommAllToAllV(g_in, counts, nullptr, g_out, counts, nullptr, hcommFloat32,
                              self.comm, nullptr);
      },
      [](const Rank& self, const size_t* counts) {
        return hcommGatherV(g_in, counts[self.rank], g_out, counts, nullptr, hcommFloat32, 0,
                            self.comm, nullptr);
      },
      [](const Rank& self, const size_t* counts) {
        return hcommScatterV(g_in, counts, nullptr, g_out, counts[self.rank], hcommFloat32, 0,
                             self.comm, nullptr);
      }};
  const VCall call = kCalls[std::get<1>(GetParam())];
  const Settings settings{.transports = std::get<0>(GetParam()), .timeout_ms = 20000};
  const auto begin = Clock::now();
  const std::string wrong = run_world(3, settings, [&](const Rank& self) {
    // Rank 1 counts one element more of itself and of rank 0 than the others do.
    const size_t more = self.rank == 1 ? 1 : 0, counts[] = {3 + more, 3 + more, 3};
    hcommResult_t result = call(self, counts);
    if (result == hcommSuccess) result = hcommBarrier(self.comm, nullptr);
    expect(self, result, hcommInvalidUsage, "the call");
    expect(self, says(hcommGetLastError(self.comm), "rank 1"),
           std::string("rank 1 in: ") + hcommGetLastError(self.comm));
  });
  EXPECT_FALSE(says(wrong.c_str(), "expected")) << wrong;
  EXPECT_LT(seconds_since(begin), 15);
}

std::string v_name(const testing::TestParamInfo<std::tuple<const char*, int>>& place) {
  constexpr const char* kNames[] = {"AllGatherV", "ReduceScatterV", "AllToAllV", "GatherV",
                                    "ScatterV"};
  return std::string(kNames[std::get<1>(place.param)]) + "_" + std::get<0>(place.param);
}

INSTANTIATE_TEST_SUITE_P(Calls, VMismatch,
                         testing::Combine(testing::Values("shm", "tcp"), testing::Range(0, 5)),
                         v_name);

// One bad argument after the other, of any form: each is refused, and the next call works.
void call_badly(const Rank& self) {
  float in[16] = {}, out[16] = {};
  const auto c = self.comm;
  const size_t two[] = {2, 2}, apart[] = {0, 2}, over[] = {0, 1};
  const size_t other[] = {self.rank == 0 ? 3u : 2u, self.rank == 1 ? 3u : 2u};
  const auto bad = [&](hcommResult_t result, const char* what) {
    expect(self, result, hcommInvalidArgument, what);
    expect(self, *hcommGetLastError(nullptr) != '\0', std::string("a text for ") + what);
  };
  const auto type = hcommFloat32;
  const auto no_type = hcommNumTypes;
  bad(hcommAllReduce(in, out, 1, no_type, hcommSum, c, nullptr), "type");
  bad(hcommAllReduce(in, out, 1, type, hcommBxor, c, nullptr), "bits of floats");
  bad(hcommAllReduce(in, out, 1, type, static_cast<hcommRedOp_t>(99), c, nullptr), "operator");
  bad(hcommBroadcast(in, out, 1, type, 2, c, nullptr), "root");
  bad(hcommSend(in, 1, type, -1, c, nullptr), "peer");
  bad(hcommRecv(out, 1, type, 2, c, nullptr), "peer");
  bad(hcommSend(nullptr, 1, type, 0, c, nullptr), "no data to send");
  bad(hcommRecv(nullptr, 1, type, 0, c, nullptr), "no room to receive");
  bad(hcommRecv(out, 1, no_type, 0, c, nullptr), "type of a receive");
  bad(hcommAllGatherV(in, out, nullptr, apart, type, c, nullptr), "no counts");
  bad(hcommAllGatherV(nullptr, out, two, apart, type, c, nullptr), "no data");
  bad(hcommAllGatherV(in, out, two, over, type, c, nullptr), "blocks that overlap");
  bad(hcommAllToAllV(in, two, apart, out, two, over, type, c, nullptr), "blocks that overlap");
  bad(hcommAllToAllV(in, two, apart, in, two, nullptr, no_type, c, nullptr), "type");
  bad(hcommAllToAllV(in, two, nullptr, in, other, nullptr, type, c, nullptr), "in place, counts");
  bad(hcommAllToAllV(in, nullptr, nullptr, out, two, nullptr, type, c, nullptr), "no counts");
  bad(hcommReduceScatterV(in, in + 1, two, apart, type, hcommSum, c, nullptr), "overlap");
  bad(hcommReduceScatterV(in, nullptr, two, apart, type, hcommSum, c, nullptr), "no room");
  bad(hcommGatherV(in, 2, out, nullptr, nullptr, type, self.rank, c, nullptr), "root's counts");
  bad(hcommGatherV(in, 1, out, two, apart, type, self.rank, c, nullptr), "root's own count");
  bad(hcommGatherV(in, 2, out, two, over, type, self.rank, c, nullptr), "blocks that overlap");
  bad(hcommScatterV(in, nullptr, nullptr, out, 2, type, self.rank, c, nullptr), "root's counts");
  bad(hcommScatterV(in, two, apart, out, 3, type, self.rank, c, nullptr), "root's own count");
  bad(hcommScatterV(in, two, apart, in + 1, 2, type, self.rank, c, nullptr), "overlap");
}

TEST(Refused, BadArgumentsLeaveTheCommunicatorUsable) {
  for (const char* transport : {"shm", "tcp"}) {
    const std::string wrong = run_world(2, {.transports = transport}, [](const Rank& self) {
      call_badly(self);
      int out = 0;
      self.ok(sum_one(self, &out), "afterwards");
      expect(self, out == 2, "the right sum");
      hcommResult_t state = hcommInternalError;
      self.ok(hcommCommGetAsyncError(self.comm, &state), "state");
      expect(self, state, hcommSuccess, "the state");
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

}  // namespace
}  // namespace hcomm::test
