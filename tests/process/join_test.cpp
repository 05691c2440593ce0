// SPDX-License-Identifier: Apache-2.0
// How communicators come to be, and how they do not, by the C API: reported faults of rendezvous as
// small cases, limits of descriptors and ports, deaths while ranks join.
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "process/processes.h"
#include "support/held_port.h"
#include "support/shell.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

bool says(const char* text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    if (std::strstr(text, part) == nullptr) return false;
  return true;
}

// Who hears of an error last must not find rank 0, which tells it, gone.
void wait_for_all(const Process& self, int ranks) {
  self.shared().arrived.fetch_add(1);
  while (self.shared().arrived.load() < ranks) sched_yield();
}

void limit_descriptors(const Process& self, rlim_t most) {
  const rlimit limit{most, most};
  self.expect(setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit of descriptors");
}

// -- what a communicator leaves behind -----------------------------------------------------------

// Two ranks of one process, which makes the ids itself.
TEST(Join, ManyCommunicatorsInOneProcessUseFewDescriptors) {
  EXPECT_EQ(run_processes(1, [](const Process& self) {
    limit_descriptors(self, 128);
    for (int round = 0; round < 150; round++) {
      hcommUniqueId id;
      self.check(hcommGetUniqueId(&id), "an id");
      std::thread ranks[2];
      for (int rank = 0; rank < 2; rank++)
        ranks[rank] = std::thread([&, rank] {
          hcommComm_t comm = nullptr;
          self.check(hcommCommInitRank(&comm, 2, id, rank), "init");
          self.check(hcommCommDestroy(comm), "destroy");
        });
      for (std::thread& rank : ranks) rank.join();
    }
  }), Codes{0});
}

// A process that ends waits for the goodbyes of all its communicators' peers at once.
TEST(Join, TheEndWaitsOnceForAllThatAreLeft) {
  Job job;
  job.start(2, [](const Process& self) {
    for (int round = 1; round <= 3; round++) {
      if (self.rank() == 0) {
        self.check(hcommGetUniqueId(&self.shared().id), "an id");
        self.shared().id_ready.store(round);
      }
      while (self.shared().id_ready.load() < round) sched_yield();
      hcommComm_t comm = nullptr;
      self.check(hcommCommInitRank(&comm, 2, self.shared().id, self.rank()), "init");
      if (self.rank() == 0) self.check(hcommCommDestroy(comm), "destroy");
      self.shared().arrived.fetch_add(1);
      while (self.shared().arrived.load() < 2 * round) sched_yield();
    }
    self.shared().flags[self.rank()].store(1);
    if (self.rank() == 0) std::exit(0);
    while (true) pause();
  });
  const double limit = seconds() + 30;
  while (job.shared().flags[0].load() == 0 && seconds() < limit) sched_yield();
  const double begin = seconds();
  while (!job.ended(0) && seconds() < limit) sched_yield();
  EXPECT_LT(seconds() - begin, 4);  // 2 s, not 2 s for each
}

TEST(Join, OneRankNeedsNoTransport) {
  EXPECT_EQ(run_processes(1, [](const Process& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = "self";
    hcommComm_t comm = self.join(&config);
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), Codes{0});
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    setenv("HCOMM_TRANSPORT", "self", 1);
    if (self.rank() == 0) {
      self.check(hcommGetUniqueId(&self.shared().id), "an id");
      self.shared().id_ready.store(1);
    }
    while (self.shared().id_ready.load() == 0) sched_yield();
    hcommComm_t comm = nullptr;
    self.expect(hcommCommInitRank(&comm, 2, self.shared().id, self.rank()) != hcommSuccess,
                "two ranks need one");
    self.expect(says(hcommGetLastError(nullptr), {"no transport", "HCOMM_TRANSPORT=self"}),
                hcommGetLastError(nullptr));
    wait_for_all(self, 2);
  }), (Codes{0, 0}));
}

// -- deaths --------------------------------------------------------------------------------------

// Rank 3 of the job is rank 2 of the child that waits for it.
TEST(Join, ADeathWhileAChildConnectsIsToldToItsMembers) {
  EXPECT_EQ(run_processes(4, [](const Process& self) {
    hcommComm_t comm = self.join(), child = nullptr;
    self.sum(comm);
    wait_for_all(self, 4);
    if (self.rank() == 3) kill(getpid(), SIGKILL);
    const int outside = 0;
    if (self.rank() != outside) {
      self.expect(hcommCommShrink(comm, &outside, 1, &child, nullptr, HCOMM_SHRINK_DEFAULT) ==
                      hcommRemoteError, "an error of a peer");
      self.expect(says(hcommGetLastError(nullptr), {"rank 3", "died"}),
                  hcommGetLastError(nullptr));
    }
    wait_for_all(self, 4 + 3);
    (void)hcommCommDestroy(comm);
  }), (Codes{0, 0, 0, 128 + SIGKILL}));
}

// RDV-03: the file of a run that was killed still lies there.
TEST(Join, RDV_03_AnOldIdInAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "id";
  const auto exchange_by_file = [&](const Process& self) {
    hcommComm_t comm = nullptr;
    hcommUniqueId id;
    if (self.rank() == 0) {
      while (self.shared().flags[0].load() == 0) sched_yield();  // the others try the old one
      self.check(hcommGetUniqueId(&id), "an id");
      std::ofstream(path + ".new", std::ios::binary)
          .write(reinterpret_cast<const char*>(&id), sizeof id);
      self.expect(rename((path + ".new").c_str(), path.c_str()) == 0, "the file");
      self.check(hcommCommInitRank(&comm, self.ranks(), id, 0), "init");
    }
    const double begin = seconds();
    while (comm == nullptr && seconds() - begin < 20) {
      std::ifstream file(path, std::ios::binary);
      const bool whole = bool(file.read(reinterpret_cast<char*>(&id), sizeof id));
      if (whole && hcommCommInitRank(&comm, self.ranks(), id, self.rank()) != hcommSuccess)
        self.expect(says(hcommGetLastError(nullptr), {"rank 0 cannot be found", "new id"}),
                    hcommGetLastError(nullptr));
      self.shared().flags[0].store(1);
    }
    self.expect(comm != nullptr, "the new id");
    self.sum(comm, 10);
  };
  for (const int ranks : {2, 2, 3}) {
    Job job;
    job.start(ranks, [&](const Process& self) {
      exchange_by_file(self);
      self.shared().arrived.fetch_add(1);
      while (true) pause();
    });
    const double begin = seconds();
    while (job.shared().arrived.load() < ranks && seconds() - begin < 30) sched_yield();
    EXPECT_EQ(job.shared().arrived.load(), ranks);
  }  // killed
}

TEST(Join, RDV_05_AMissingRankIsNamedInTime) {
  EXPECT_EQ(run_processes(4, [](const Process& self) {
    if (self.rank() == 2) return;  // never comes
    if (self.rank() == 0) {
      self.check(hcommGetUniqueId(&self.shared().id), "an id");
      self.shared().id_ready.store(1);
    }
    while (self.shared().id_ready.load() == 0) sched_yield();
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.init_timeout_ms = 3000;
    hcommComm_t comm = nullptr;
    const double begin = seconds();
    const hcommResult_t result =
        hcommCommInitRankConfig(&comm, 4, self.shared().id, self.rank(), &config);
    const double took = seconds() - begin;
    self.expect(result == hcommTimeout && comm == nullptr, "a timeout");
    self.expect(took > 2.8 && took < 4.5, "in time");
    self.expect(says(hcommGetLastError(nullptr), {"3 of 4 joined, missing: rank 2"}),
                hcommGetLastError(nullptr));
  }), (Codes{0, 0, 0, 0}));
}

// -- ports and descriptors -----------------------------------------------------------------------

hcommResult_t init_world(const Process& self, const HeldPort& port, hcommComm_t& comm) {
  setenv("HCOMM_RANK", std::to_string(self.rank()).c_str(), 1);
  setenv("HCOMM_SIZE", std::to_string(self.ranks()).c_str(), 1);
  setenv("HCOMM_ROOT", port.address().c_str(), 1);
  return hcommCommInitWorld(&comm, nullptr);
}

TEST(Join, RDV_13_TooFewPortsAreToldToAll) {
  const HeldPort root;
  const HeldPair ports;
  const std::string range = ports.range();
  EXPECT_EQ(run_processes(4, [&](const Process& self) {
    setenv("HCOMM_PORT_RANGE", range.c_str(), 1);
    setenv("HCOMM_TRANSPORT", "tcp", 1);
    hcommComm_t comm = nullptr;
    self.expect(init_world(self, root, comm) != hcommSuccess, "an error");
    self.expect(says(hcommGetLastError(nullptr),
                     {"1 port needed, 0 of 2 available", "HCOMM_PORT_RANGE", range.c_str()}),
                hcommGetLastError(nullptr));
    wait_for_all(self, self.ranks());
  }), (Codes{0, 0, 0, 0}));
}

TEST(Join, RDV_15_TooFewDescriptorsAreToldToAll) {
  const HeldPort root;
  EXPECT_EQ(run_processes(8, [&](const Process& self) {
    setenv("HCOMM_TRANSPORT", "tcp", 1);
    setenv("HCOMM_INIT_TIMEOUT", "20s", 1);
    limit_descriptors(self, 24);
    hcommComm_t comm = nullptr;
    hcommResult_t result = init_world(self, root, comm);
    const char* text = hcommGetLastError(nullptr);
    if (result == hcommSuccess) {
      result = hcommBarrier(comm, nullptr);
      text = hcommGetLastError(comm);
    }
    self.expect(result == hcommSuccess || says(text, {"24", "ulimit -n"}), text);
    wait_for_all(self, self.ranks());
  }), Codes(8, 0));
}

// -- late ranks ----------------------------------------------------------------------------------

// RDV-11: rank 0 comes when the log of rank 1 says that it waits.
TEST(Join, RDV_11_ALateRootIsWaitedForAndTheLogSaysSo) {
  const HeldPort root;
  const TemporaryFolder folder;
  const std::string log = folder.path() / "log";
  EXPECT_EQ(run_processes(2, [&](const Process& self) {
    if (self.rank() == 1) {
      setenv("HCOMM_LOG", "info", 1);
      setenv("HCOMM_LOG_FILE", log.c_str(), 1);
    } else {
      const std::string wanted = "rank 1 waits for rank 0 at " + root.address();
      while (file_text(log).find(wanted) == std::string::npos) sched_yield();
    }
    hcommComm_t comm = nullptr;
    self.check(init_world(self, root, comm), "init");
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0}));
}

// -- signals -------------------------------------------------------------------------------------

void storm() {
  struct sigaction action {};
  action.sa_handler = [](int) { raise(SIGWINCH); };
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = [](int) {};
  sigaction(SIGWINCH, &action, nullptr);
  sigaction(SIGCHLD, &action, nullptr);
  const itimerval interval{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

TEST(Join, SIG_07_SignalsInterruptNoJoin) {
  EXPECT_EQ(run_processes(4, [](const Process& self) {
    setenv("HCOMM_TRANSPORT", "tcp", 1);
    storm();
    for (int round = 0; round < rounds(10); round++) {
      if (fork() == 0) _exit(0);  // whose end is a signal, too
      if (self.rank() == 0) {
        self.check(hcommGetUniqueId(&self.shared().id), "an id");
        self.shared().id_ready.store(round + 1);
      }
      while (self.shared().id_ready.load() <= round) sched_yield();
      hcommComm_t comm = nullptr;
      self.check(hcommCommInitRank(&comm, 4, self.shared().id, self.rank()), "init");
      self.sum(comm, 100);
      self.check(hcommCommDestroy(comm), "destroy");
      self.shared().arrived.fetch_add(1);
      while (self.shared().arrived.load() < 4 * (round + 1)) sched_yield();
    }
  }), Codes(4, 0));
}

}  // namespace
}  // namespace hcomm::test
