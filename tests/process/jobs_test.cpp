// SPDX-License-Identifier: Apache-2.0
// RDV-01: many jobs at once, while somebody else takes ports.
#include <netinet/in.h>
#include <sys/socket.h>

#include <deque>
#include <memory>

#include "process/processes.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

// Listens on ports that the system picks, at most 64 at a time, until it is killed.
[[noreturn]] void take_ports() {
  alarm(1800);
  std::deque<int> sockets;
  for (;;) {
    const int each = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(each, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
        listen(each, 1) != 0)
      _exit(1);
    sockets.push_back(each);
    if (sockets.size() < 64) continue;
    close(sockets.front());
    sockets.pop_front();
    sched_yield();
  }
}

// 2 rounds, or HCOMM_TEST_ROUNDS.
TEST(Jobs, RDV_01_EightJobsAtOnce) {
  Job thief;
  thief.start(1, [](const Process&) { take_ports(); });
  for (int round = 0; round < rounds(2); round++) {
    std::vector<std::unique_ptr<Job>> jobs;
    for (int i = 0; i < 8; i++) {
      jobs.push_back(std::make_unique<Job>());
      jobs.back()->start(2, [&](const Process& self) {
        hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
        config.transports = i % 2 == 0 ? "tcp" : nullptr;
        hcommComm_t comm = self.join(&config);
        self.sum(comm);
        self.check(hcommCommDestroy(comm), "destroy");
        std::exit(0);
      });
    }
    for (const auto& job : jobs) ASSERT_EQ(job->wait(), (Codes{0, 0})) << "round " << round;
  }
  EXPECT_FALSE(thief.ended(0)) << "the taker of ports ran out of them";
}

// DIE-09: destroy in any order at any time is no failure of a peer.
TEST(Jobs, DIE_09_RanksLeaveWhenTheyLike) {
  for (int round = 0; round < rounds(3); round++)
    EXPECT_EQ(run_processes(8, [&](const Process& self) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = round % 2 == 0 ? "shm" : "tcp";
      hcommComm_t comm = self.join(&config);
      self.sum(comm);
      usleep(static_cast<useconds_t>((self.rank() * 37 + round * 11) % 8) * 4000);  // a skew
      self.check(hcommCommDestroy(comm), "destroy");
      std::exit(0);
    }), Codes(8, 0));
}

}  // namespace
}  // namespace hcomm::test
