// SPDX-License-Identifier: Apache-2.0
// ABT-01 with peers that cannot answer: whoever is stopped or dead, abort returns within 2 s, from
// another thread, for what runs, is queued on a stream, or waits in a group.
#include <string>
#include <thread>

#include "process/processes.h"
#include "support/stop.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

enum class Way { call, stream, group };

void abort_when_running(const Process& self, hcommComm_t comm) {
  hcommResult_t state = hcommSuccess;
  while (state == hcommSuccess) self.check(hcommCommGetAsyncError(comm, &state), "state", comm);
  const double begin = seconds();
  self.check(hcommCommAbort(comm), "abort", comm);
  self.expect(seconds() - begin < 2, "abort within 2 s");
}

// Waits in a sum that never ends until the other thread aborts it; what it returns.
hcommResult_t wait_in_a_sum(const Process& self, hcommComm_t comm, Way way) {
  float in[3] = {1, 1, 1}, out[3] = {};
  const auto sum = [&](int i, hcommStream_t stream) {
    return hcommAllReduce(in + i, out + i, 1, hcommFloat32, hcommSum, comm, stream);
  };
  std::thread aborter([&] { abort_when_running(self, comm); });
  hcommResult_t result = hcommSuccess;
  if (way == Way::call) {
    result = sum(0, nullptr);
  } else if (way == Way::group) {
    hcommGroupStart();
    for (int i = 0; i < 3; i++) self.check(sum(i, nullptr), "in the group", comm);
    result = hcommGroupEnd();
  } else {
    hcommStream_t stream;
    self.check(hcommStreamCreate(&stream, nullptr), "stream");
    for (int i = 0; i < 3; i++) self.check(sum(i, stream), "is queued", comm);
    result = hcommStreamSynchronize(stream);
    self.check(hcommStreamDestroy(stream), "stream");
  }
  aborter.join();
  return result;
}

struct Case {
  const char* transport;
  int victim;
  bool dies;  // else it is stopped
  Way way;
};

class Abort : public testing::TestWithParam<Case> {};

TEST_P(Abort, ABT_01_ReturnsWhateverPeersDo) {
  const Case each = GetParam();
  Job job;
  job.start(3, [&](const Process& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = each.transport;
    hcommComm_t comm = self.join(&config);
    self.sum(comm);
    self.shared().flags[0].fetch_add(1);
    while (self.shared().flags[0].load() < 3) sched_yield();  // all have that sum
    if (self.rank() == each.victim) {
      if (each.dies) raise(SIGKILL);
      stop_self();
      _exit(0);  // continued by the test
    }
    const hcommResult_t result = wait_in_a_sum(self, comm, each.way);
    // Who has died may be known before the abort.
    self.expect(result == hcommAborted || (each.dies && result == hcommRemoteError), "aborted");
    const double begin = seconds();
    hcommCommDestroy(comm);
    self.expect(seconds() - begin < 5, "destroy soon");
    self.shared().arrived.fetch_add(1);
    while (self.shared().arrived.load() < 2) sched_yield();
    _exit(0);
  });
  while (job.shared().arrived.load() < 2 && !job.ended(each.victim == 2 ? 0 : 2)) sched_yield();
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(job.pid(each.victim)), &info, WSTOPPED | WEXITED | WNOWAIT);
  if (!each.dies) kill(job.pid(each.victim), SIGCONT);
  Codes wanted(3, 0);
  if (each.dies) wanted[static_cast<size_t>(each.victim)] = 128 + SIGKILL;
  EXPECT_EQ(job.wait(), wanted);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* transport : {"shm", "tcp"})
    for (const int victim : {0, 2})  // rank 0 serves the control plane
      for (const bool dies : {false, true})
        for (const Way way : {Way::call, Way::stream, Way::group})
          all.push_back({transport, victim, dies, way});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Peers, Abort, testing::ValuesIn(cases()), [](const auto& place) {
  const Case& each = place.param;
  return std::string(each.transport) + "_rank" + std::to_string(each.victim) +
         (each.dies ? "_dead" : "_stopped") +
         (each.way == Way::call ? "" : each.way == Way::stream ? "_stream" : "_group");
});

}  // namespace
}  // namespace hcomm::test
