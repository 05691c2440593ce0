// SPDX-License-Identifier: Apache-2.0
// The C API as a program uses it: every way into a communicator, groups, streams, events, splits,
// operators, errors. Ranks are threads, or driven by this thread.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "api/expect.h"

namespace hcomm::test {
namespace {

TEST(Api, VersionAndTexts) {
  int version = 0;
  EXPECT_EQ(hcommGetVersion(&version), hcommSuccess);
  EXPECT_EQ(version, HCOMM_VERSION_CODE);
  EXPECT_EQ(hcommGetVersion(nullptr), hcommInvalidArgument);
  for (int result = 0; result < hcommNumResults; result++)
    EXPECT_STRNE(hcommGetErrorString(static_cast<hcommResult_t>(result)), "unknown result");
}

TEST(Api, BadHandlesAreRefused) {
  float value = 0;
  EXPECT_EQ(hcommAllReduce(&value, &value, 1, hcommFloat32, hcommSum, nullptr, nullptr),
            hcommInvalidArgument);
  EXPECT_TRUE(says(hcommGetLastError(nullptr), "comm is NULL")) << hcommGetLastError(nullptr);
  EXPECT_EQ(hcommCommDestroy(nullptr), hcommSuccess);
  hcommUniqueId id{};
  hcommComm_t comm = nullptr;
  EXPECT_EQ(hcommCommInitRank(&comm, 2, id, 0), hcommInvalidArgument);  // no id
  EXPECT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  EXPECT_EQ(hcommCommInitRank(&comm, 2, id, 2), hcommInvalidArgument);
  EXPECT_EQ(hcommCommInitRank(&comm, 0, id, 0), hcommInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

// NCCL's idiom: all ranks in one process, one thread, calls inside a group.
TEST(Api, InitAllDrivenByOneThread) {
  constexpr int kRanks = 4;
  hcommComm_t comms[kRanks];
  ASSERT_EQ(hcommCommInitAll(comms, kRanks, nullptr), hcommSuccess) << hcommGetLastError(nullptr);
  std::vector<std::vector<float>> in(kRanks), out(kRanks);
  for (const size_t count : {1, 1000, 300000}) {
    ASSERT_EQ(hcommGroupStart(), hcommSuccess);
    for (size_t r = 0; r < kRanks; r++) {
      in[r].assign(count, static_cast<float>(r + 1));
      out[r].assign(count, 0);
      ASSERT_EQ(hcommAllReduce(in[r].data(), out[r].data(), count, hcommFloat32, hcommSum,
                               comms[r], nullptr), hcommSuccess);
    }
    ASSERT_EQ(hcommGroupEnd(), hcommSuccess) << hcommGetLastError(comms[0]);
    for (const auto& each : out)
      for (const float value : each) ASSERT_EQ(value, 10.0f);
  }
  hcommComm_t halves[kRanks];
  ASSERT_EQ(hcommGroupStart(), hcommSuccess);
  for (int r = 0; r < kRanks; r++)
    ASSERT_EQ(hcommCommSplit(comms[r], r % 2, -r, &halves[r], nullptr), hcommSuccess);
  ASSERT_EQ(hcommGroupEnd(), hcommSuccess) << hcommGetLastError(nullptr);
  for (int r = 0; r < kRanks; r++) {
    int count = 0, rank = -1;
    EXPECT_EQ(hcommCommCount(halves[r], &count), hcommSuccess);
    EXPECT_EQ(hcommCommUserRank(halves[r], &rank), hcommSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(rank, r < 2 ? 1 : 0);  // the greater rank has the lesser key
  }
  for (int r = 0; r < kRanks; r++) {
    EXPECT_EQ(hcommCommDestroy(halves[r]), hcommSuccess);
    EXPECT_EQ(hcommCommDestroy(comms[r]), hcommSuccess);
  }
}

TEST(Api, StreamsAreAsynchronousAndOrdered) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    hcommStream_t first, second;
    hcommEvent_t event;
    self.ok(hcommStreamCreate(&first, nullptr), "stream");
    self.ok(hcommStreamCreate(&second, "cpu"), "stream");
    self.ok(hcommEventCreate(&event), "event");
    std::vector<int> a(50000, self.rank), b(a.size()), c(a.size());
    // b = sum of a on the first stream; c = sum of b on the second, after the event.
    self.ok(hcommAllReduce(a.data(), b.data(), a.size(), hcommInt32, hcommSum, self.comm, first),
            "first");
    self.ok(hcommEventRecord(event, first), "record");
    self.ok(hcommStreamWaitEvent(second, event), "wait");
    self.ok(hcommAllReduce(b.data(), c.data(), a.size(), hcommInt32, hcommSum, self.comm, second),
            "second");
    self.ok(hcommStreamSynchronize(second), "synchronize");
    self.ok(hcommEventQuery(event), "query");
    for (const int value : c)
      if (value != 9) return self.findings->add("got " + std::to_string(value));
    self.ok(hcommStreamQuery(first), "idle");
    self.ok(hcommEventDestroy(event), "event");
    self.ok(hcommStreamDestroy(first), "stream");
    self.ok(hcommStreamDestroy(second), "stream");
  });
  EXPECT_EQ(wrong, "");
}

// ABT-05: what is in flight at destroy is finished first.
TEST(Api, ABT_05_DestroyFlushesWhatIsQueued) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    hcommComm_t child = nullptr;
    self.ok(hcommCommSplit(self.comm, 0, self.rank, &child, nullptr), "split");
    hcommStream_t stream;
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
    std::vector<float> in(4 << 20, 1), out(in.size());
    self.ok(hcommAllReduce(in.data(), out.data(), in.size(), hcommFloat32, hcommSum, child,
                           stream), "allreduce");
    self.ok(hcommCommDestroy(child), "destroy");
    for (const float value : out)
      if (value != 2) return self.findings->add("destroy came before the data");
    self.ok(hcommStreamDestroy(stream), "stream");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Api, SplitWithoutColorGivesNoCommunicator) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    hcommComm_t child = nullptr;
    const int color = self.rank == 1 ? HCOMM_SPLIT_NOCOLOR : 7;
    self.ok(hcommCommSplit(self.comm, color, 0, &child, nullptr), "split");
    if ((child == nullptr) != (self.rank == 1)) self.findings->add("wrong members");
    if (child == nullptr) return;
    int in = 1, out = 0;
    self.ok(hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, child, nullptr), "in the child");
    if (out != 2) self.findings->add("wrong sum");
    self.ok(hcommCommDestroy(child), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Api, GroupedCollectivesOfTwoCommunicators) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    hcommComm_t other = nullptr;
    self.ok(hcommCommSplit(self.comm, 0, -self.rank, &other, nullptr), "split");
    std::vector<int> a(1000, 1), b(1000), c(1000, self.rank), d(1000);
    hcommGroupStart();
    // In another order on every other rank: a group starts all of them together.
    const auto first = [&] {
      hcommAllReduce(a.data(), b.data(), 1000, hcommInt32, hcommSum, self.comm, nullptr);
    };
    const auto second = [&] {
      hcommAllReduce(c.data(), d.data(), 1000, hcommInt32, hcommMax, other, nullptr);
    };
    if (self.rank % 2 == 0) first();
    second();
    if (self.rank % 2 == 1) first();
    self.ok(hcommGroupEnd(), "group");
    if (b[999] != 3 || d[999] != 2) self.findings->add("wrong results");
    self.ok(hcommCommDestroy(other), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

// formats.md: a difference in what ranks read names the first differing line and both ranks.
TEST(Api, DifferentPolicyFilesAreAnErrorThatNamesTheLine) {
  constexpr int kRanks = 3;
  char folder[] = "/tmp/hcomm-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string same = std::string(folder) + "/same.conf", other = folder + std::string("/x");
  const std::string common = "[path_rule]\nmatch ranks=2 -> algorithm=ring\n";
  std::ofstream(same) << common << "match size<1K -> algorithm=direct\n";
  std::ofstream(other) << common << "# another line\nmatch size<2K -> algorithm=direct\n";
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  std::vector<std::string> texts(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; rank++)
    threads.emplace_back([&, rank] {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.policy = rank == 1 ? other.c_str() : same.c_str();
      hcommComm_t comm = nullptr;
      EXPECT_EQ(hcommCommInitRankConfig(&comm, kRanks, id, rank, &config), hcommInvalidUsage);
      texts[static_cast<size_t>(rank)] = hcommGetLastError(nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) {
    EXPECT_TRUE(says(text.c_str(), "'match size<1K -> algorithm=direct' (")) << text;
    EXPECT_TRUE(says(text.c_str(), "/x:4)")) << text;
    EXPECT_TRUE(says(text.c_str(), "rank 0 (host ")) << text;
    EXPECT_TRUE(says(text.c_str(), "rank 1 (host ")) << text;
  }
  std::filesystem::remove_all(folder);
}

TEST(Api, DifferentCallsAreAnErrorThatNamesBothSides) {
  for (const char* transport : {"shm", "tcp"}) {
    const auto begin = Clock::now();
    const std::string wrong =
        run_world(3, {.transports = transport, .timeout_ms = 20000}, [](const Rank& self) {
          std::vector<float> data(300, 1), out(300);
          const size_t count = self.rank == 1 ? 100 : 200;
          const hcommResult_t result = hcommAllReduce(data.data(), out.data(), count, hcommFloat32,
                                                      hcommSum, self.comm, nullptr);
          const std::string text = hcommGetLastError(self.comm);
          if (result != hcommInvalidUsage || text.find("count=100") == std::string::npos ||
              text.find("count=200") == std::string::npos)
            self.findings->add(std::to_string(result) + ": " + text);
          // sticky
          if (hcommBarrier(self.comm, nullptr) == hcommSuccess)
            self.findings->add("the communicator went on");
        });
    EXPECT_TRUE(wrong.empty() || says(wrong.c_str(), "destroy")) << wrong;
    EXPECT_LT(seconds_since(begin), 15) << transport;
  }
}

TEST(Api, AnAbsentRankIsATimeoutThatNamesIt) {
  const std::string wrong = run_world(3, {.timeout_ms = 700}, [](const Rank& self) {
    if (self.rank == 2) {  // comes to nothing but the end
      hcommResult_t error = hcommSuccess;
      while (error == hcommSuccess) {
        hcommCommGetAsyncError(self.comm, &error);
        std::this_thread::yield();
      }
      return;
    }
    float in = 1, out = 0;
    const hcommResult_t result =
        hcommAllReduce(&in, &out, 1, hcommFloat32, hcommSum, self.comm, nullptr);
    hcommErrorInfo_t info{.size = sizeof info};
    self.ok(hcommCommGetErrorInfo(self.comm, &info), "info");
    if (result != hcommTimeout || info.code != hcommTimeout || info.peer != 2 ||
        !says(info.text, "rank 2") || !says(info.operation, "all_reduce") || info.sequence != 1)
      self.findings->add(std::to_string(result) + " " + info.text);
  });
  EXPECT_TRUE(wrong.empty() || says(wrong.c_str(), "destroy")) << wrong;
}

TEST(Api, ABT_01_AbortFromAnotherThreadReturnsAtOnce) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    if (self.rank == 1) {
      hcommResult_t error = hcommSuccess;
      while (error == hcommSuccess) {
        hcommCommGetAsyncError(self.comm, &error);
        std::this_thread::yield();
      }
      if (error != hcommAborted) self.findings->add("rank 1 did not learn of the abort");
      return;
    }
    std::thread aborter([&] {
      hcommResult_t error = hcommSuccess;
      while (error != hcommInProgress) hcommCommGetAsyncError(self.comm, &error);
      const auto begin = Clock::now();
      self.ok(hcommCommAbort(self.comm), "abort");
      if (seconds_since(begin) > 2) self.findings->add("abort took too long");
    });
    float in = 1, out = 0;
    if (hcommAllReduce(&in, &out, 1, hcommFloat32, hcommSum, self.comm, nullptr) != hcommAborted)
      self.findings->add("the blocked call did not return aborted");
    aborter.join();
  });
  EXPECT_EQ(wrong, "");
}

TEST(Api, MappedMemoryGivesTheSameResults) {
  const std::string wrong = run_world(3, {.transports = "shm"}, [](const Rank& self) {
    for (const size_t count : {1, 5000, 500000}) {
      float *in = nullptr, *out = nullptr;
      self.ok(hcommMemAlloc(reinterpret_cast<void**>(&in), count * 4, nullptr), "in");
      self.ok(hcommMemAlloc(reinterpret_cast<void**>(&out), count * 4, nullptr), "out");
      for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
          in[i] = static_cast<float>((i + static_cast<size_t>(round)) % 100) +
                  static_cast<float>(self.rank);
        self.ok(hcommAllReduce(in, out, count, hcommFloat32, hcommSum, self.comm, nullptr), "sum");
        for (size_t i = 0; i < count; i++)
          if (out[i] != 3 * static_cast<float>((i + static_cast<size_t>(round)) % 100) + 3)
            return self.findings->add("wrong at " + std::to_string(i));
        self.ok(hcommAllReduce(in, in, count, hcommFloat32, hcommSum, self.comm, nullptr),
                "in place");
        if (std::memcmp(in, out, count * 4) != 0) self.findings->add("in place differs");
      }
      self.ok(hcommMemFree(in), "free");
      self.ok(hcommMemFree(out), "free");
    }
    int not_ours = 0;
    if (hcommMemFree(&not_ours) != hcommInvalidArgument)
      self.findings->add("freed what is not ours");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Api, RegistrationIsCheckedAndHarmless) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    std::vector<char> memory(100);
    void* handle = nullptr;
    self.ok(hcommCommRegister(self.comm, memory.data(), memory.size(), &handle), "register");
    self.ok(hcommCommDeregister(self.comm, handle), "deregister");
    if (hcommCommDeregister(self.comm, handle) != hcommInvalidArgument)
      self.findings->add("deregistered twice");
    if (hcommCommRegister(self.comm, nullptr, 1, &handle) != hcommInvalidArgument)
      self.findings->add("registered nothing");
  });
  EXPECT_EQ(wrong, "");
}

// Two threads, one communicator: calls take turns; data never mix.
TEST(Api, THR_01_ThreadsTakeTurns) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    std::vector<hcommComm_t> comms(2);
    for (hcommComm_t& comm : comms)
      self.ok(hcommCommSplit(self.comm, 0, self.rank, &comm, nullptr), "split");
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; i++) {
          int in = t * 1000 + i, out = 0;
          self.ok(hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, comms[static_cast<size_t>(t)],
                                 nullptr), "own communicator");
          if (out != 2 * in) return self.findings->add("mixed data");
        }
      });
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (int t = 0; t < 2; t++)  // the same values from both threads: any order is right
      threads.emplace_back([&] {
        for (int i = 0; i < 200; i++) {
          int in = 5, out = 0;
          self.ok(hcommAllReduce(&in, &out, 1, hcommInt32, hcommSum, self.comm, nullptr),
                  "shared communicator");
          if (out != 10) return self.findings->add("mixed data on the shared one");
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (hcommComm_t comm : comms) self.ok(hcommCommDestroy(comm), "destroy");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
