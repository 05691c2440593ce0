// SPDX-License-Identifier: Apache-2.0
// The calls of the C API beside the collectives: revoke, finalize, names, explanations, settings
// that are refused, registration.
#include "api/expect.h"

namespace hcomm::test {
namespace {

TEST(Calls, RevokeEndsWhatRunsAndKeepsTheHandle) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    int out = 0, count = 0;
    self.ok(hcommBarrier(self.comm, nullptr), "all are there");
    if (self.rank == 1)
      self.ok(hcommCommRevoke(self.comm), "revoke");
    else
      expect(self, sum_one(self, &out), hcommAborted, "the sum that rank 1 does not join");
    expect(self, sum_one(self, &out), hcommAborted, "a later sum");
    expect(self, hcommBarrier(self.comm, nullptr), hcommAborted, "a later barrier");
    expect(self, wait_for_state(self), hcommAborted, "the state");
    self.ok(hcommCommCount(self.comm, &count), "the handle is valid");
    expect(self, count == 3 && out == 0, "3 ranks, no result");
  });
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(hcommCommRevoke(nullptr), hcommInvalidArgument);
}

TEST(Calls, AfterFinalizeOperationsAreRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = 0, rank = -1;
    self.ok(sum_one(self, &out), "before");
    self.ok(hcommCommFinalize(self.comm), "finalize");
    self.ok(hcommCommFinalize(self.comm), "finalize again");
    expect(self, sum_one(self, &out), hcommInvalidUsage, "a sum");
    expect(self, says(hcommGetLastError(nullptr), "finalized"), "a text that says why");
    expect(self, hcommBarrier(self.comm, nullptr), hcommInvalidUsage, "a barrier");
    expect(self, hcommSend(&out, 1, hcommInt32, 1 - self.rank, self.comm, nullptr),
           hcommInvalidUsage, "a send");
    hcommGroupStart();
    expect(self, hcommRecv(&out, 1, hcommInt32, 1 - self.rank, self.comm, nullptr),
           hcommInvalidUsage, "a receive in a group");
    expect(self, hcommGroupEnd(), hcommInvalidUsage, "the end of that group");
    self.ok(hcommCommUserRank(self.comm, &rank), "its rank may still be asked");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Calls, DeviceAndNameOutliveTheCallersStrings) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  hcommComm_t comm = nullptr;
  {
    const std::string name(1000, 'g');
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.name = name.c_str();
    config.device = "cpu";
    ASSERT_EQ(hcommCommInitRankConfig(&comm, 1, id, 0, &config), hcommSuccess);
  }
  const char *name = nullptr, *device = nullptr;
  EXPECT_EQ(hcommCommName(comm, &name), hcommSuccess);
  EXPECT_EQ(std::string(name), std::string(1000, 'g'));
  EXPECT_EQ(hcommCommDevice(comm, &device), hcommSuccess);
  EXPECT_STREQ(device, "cpu");
  EXPECT_EQ(hcommCommName(comm, nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommCommDevice(comm, nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommCommName(nullptr, &name), hcommInvalidArgument);
  EXPECT_EQ(hcommCommDevice(nullptr, &device), hcommInvalidArgument);
  EXPECT_EQ(hcommCommDestroy(comm), hcommSuccess);
}

TEST(Calls, ExplainSaysWhatWouldRun) {
  const std::string wrong = run_world(3, {.transports = "tcp"}, [](const Rank& self) {
    char text[256], small[6];
    for (const char* name : {"all_reduce", "reduce", "broadcast", "all_gather", "all_gather_v",
                             "reduce_scatter", "reduce_scatter_v", "all_to_all", "all_to_all_v",
                             "gather", "gather_v", "scatter", "scatter_v", "barrier"}) {
      self.ok(hcommCommExplain(self.comm, name, 1000, hcommFloat32, text, sizeof text), name);
      expect(self, says(text, " tcp") && !says(text, "shm"), std::string(name) + ": " + text);
      self.ok(hcommCommExplain(self.comm, name, 1000, hcommFloat32, small, sizeof small), name);
      expect(self, std::string(small) == std::string(text).substr(0, 5), "a text cut to 5");
    }
    const auto refused = [&](const char* name, hcommDataType_t type, char* to, size_t bytes) {
      expect(self, hcommCommExplain(self.comm, name, 1, type, to, bytes), hcommInvalidArgument,
             "a bad argument of explain");
    };
    refused("all_reduces", hcommInt8, text, sizeof text);
    refused(nullptr, hcommInt8, text, sizeof text);
    refused("all_reduce", hcommNumTypes, text, sizeof text);
    refused("all_reduce", hcommInt8, nullptr, 9);
    refused("all_reduce", hcommInt8, text, 0);
    int out = 0;
    self.ok(sum_one(self, &out), "afterwards");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Calls, SettingsThatAreNotOfferedAreRefused) {
  hcommUniqueId id;
  ASSERT_EQ(hcommGetUniqueId(&id), hcommSuccess);
  using Change = void (*)(hcommConfig_t&);
  const std::pair<hcommResult_t, Change> bad[] = {
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.size--; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.size = 0; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.magic ^= 1; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.version += 100; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.timeout_ms = -1; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.init_timeout_ms = -5; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.transports = "pigeon"; }},
      {hcommInvalidArgument, [](hcommConfig_t& c) { c.blocking = 2; }},
      {hcommUnsupported, [](hcommConfig_t& c) { c.compression = "zstd"; }},
      {hcommUnsupported, [](hcommConfig_t& c) { c.integrity = "crc32c"; }},
      {hcommUnsupported, [](hcommConfig_t& c) { c.topology = "/no/such.xml"; }},
      {hcommUnsupported, [](hcommConfig_t& c) { c.device = "cuda:0"; }}};
  hcommComm_t comm = nullptr;
  for (size_t i = 0; i < std::size(bad); i++) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    bad[i].second(config);
    EXPECT_EQ(hcommCommInitRankConfig(&comm, 1, id, 0, &config), bad[i].first)
        << i << ": " << hcommGetLastError(nullptr);
    EXPECT_EQ(comm, nullptr);
    EXPECT_STRNE(hcommGetLastError(nullptr), "");
  }
  hcommUniqueId fresh;
  ASSERT_EQ(hcommGetUniqueId(&fresh), hcommSuccess);
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.compression = "none";
  config.integrity = "off";
  EXPECT_EQ(hcommCommInitRankConfig(&comm, 1, fresh, 0, &config), hcommSuccess)
      << hcommGetLastError(nullptr);
  EXPECT_EQ(hcommCommDestroy(comm), hcommSuccess);
}

// ABT-07: a child that cannot be made leaves its parent usable.
TEST(Calls, ABT_07_ASplitWithBadSettingsIsRefusedEverywhere) {
  const std::string wrong = run_world(3, {}, [](const Rank& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.compression = "zstd";
    hcommComm_t child = self.comm;
    expect(self, hcommCommSplit(self.comm, 0, 0, &child, &config), hcommUnsupported, "split");
    expect(self, child == nullptr, "no child");
    expect(self, hcommCommSplit(self.comm, -2, 0, &child, nullptr), hcommInvalidArgument, "color");
    expect(self, hcommCommSplit(self.comm, 0, 0, nullptr, nullptr), hcommInvalidArgument, "NULL");
    int out = 0;
    self.ok(sum_one(self, &out), "the parent afterwards");
    expect(self, out == 3, "the right sum");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Calls, InitAllServesRanksAsThreads) {
  constexpr int kRanks = 3;
  hcommComm_t comms[kRanks];
  const char* const devices[] = {"cpu", "cpu", "cpu"};
  ASSERT_EQ(hcommCommInitAll(comms, kRanks, devices), hcommSuccess) << hcommGetLastError(nullptr);
  Findings findings;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; rank++)
    threads.emplace_back([&, rank] {
      const Rank self{comms[rank], rank, kRanks, &findings};
      for (int i = 0; i < 50; i++) {
        int out = 0;
        self.ok(sum_one(self, &out), "sum");
        expect(self, out == kRanks, "the right sum");
      }
      self.ok(hcommCommDestroy(self.comm), "destroy");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(findings.text(), "");
}

TEST(Calls, InitAllMakesAllRanksOrNone) {
  hcommComm_t comms[2];
  const char* const devices[] = {"cpu", "cuda:0"};
  EXPECT_EQ(hcommCommInitAll(comms, 2, devices), hcommUnsupported);
  EXPECT_TRUE(says(hcommGetLastError(nullptr), "cuda:0")) << hcommGetLastError(nullptr);
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
  EXPECT_EQ(hcommCommInitAll(nullptr, 2, nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommCommInitAll(comms, 0, nullptr), hcommInvalidArgument);
}

TEST(Calls, RegistrationRefusesBadArguments) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    char memory[64];
    void* handle = nullptr;
    const auto refused = [&](hcommResult_t result) {
      expect(self, result, hcommInvalidArgument, "a bad registration");
    };
    refused(hcommCommRegister(self.comm, memory, 0, &handle));
    refused(hcommCommRegister(self.comm, memory, 64, nullptr));
    refused(hcommCommRegister(nullptr, memory, 64, &handle));
    refused(hcommCommDeregister(self.comm, nullptr));
    refused(hcommCommDeregister(nullptr, memory));
  });
  EXPECT_EQ(wrong, "");
}

// TMO-01: 0 is no limit, not a limit of nothing.
TEST(Calls, TMO_01_ATimeoutOfZeroIsNone) {
  const std::string wrong = run_world(2, {.timeout_ms = 0}, [](const Rank& self) {
    int out = 0;
    if (self.rank == 1)  // late: rank 0 waits in the sum meanwhile
      for (const auto begin = Clock::now(); seconds_since(begin) < 0.4;)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    self.ok(sum_one(self, &out), "a sum that one rank joins late");
    expect(self, out == 2, "the right sum");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
