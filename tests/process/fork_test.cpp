// SPDX-License-Identifier: Apache-2.0
// Reported faults of fork, exec, affinity and waiting, as small cases with their identifiers.
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#include <string>

#include "process/processes.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

int run_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Fork, SIG_01_AForkedChildMayExitButNotCall) {
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    hcommComm_t comm = self.join();
    self.sum(comm);
    self.expect(run_child([] { return 0; }) == 0, "a child that only exits");
    self.expect(run_child([&] {
                  float in = 1, out = 0;
                  return hcommAllReduce(&in, &out, 1, hcommFloat32, hcommSum, comm, nullptr);
                }) == hcommInvalidUsage, "a call in the child is refused");
    self.expect(run_child([&] { return hcommCommDestroy(comm); }) == hcommInvalidUsage,
                "destroy in the child is refused");
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0}));
}

TEST(Fork, SIG_03_AChildMayJoinANewJob) {
  for (const bool destroyed : {true, false}) {
    EXPECT_EQ(run_processes(2, [&](const Process& self) {
      hcommUniqueId id;
      hcommComm_t own = nullptr;
      self.check(hcommGetUniqueId(&id), "id");
      self.check(hcommCommInitRank(&own, 1, id, 0), "own communicator");
      if (destroyed) self.check(hcommCommDestroy(own), "destroy");
      self.expect(run_child([&] {
                    hcommComm_t comm = self.join();
                    self.sum(comm);
                    self.check(hcommCommDestroy(comm), "destroy");
                    return 0;
                  }) == 0, "the child's own job");
      if (!destroyed) self.check(hcommCommDestroy(own), "destroy");
    }), (Codes{0, 0})) << destroyed;
  }
}

// A program that a rank has started must not keep its connections open.
TEST(Fork, SIG_05_ASubprocessDoesNotKeepTheConnectionsOfADeadRank) {
  for (const char* transport : {"shm", "tcp"}) {
    Job job;
    job.start(2, [&](const Process& self) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = transport;
      hcommComm_t comm = self.join(&config);
      self.sum(comm);
      if (self.rank() == 1) {
        const pid_t child = fork();
        if (child == 0) {
          execlp("sleep", "sleep", "20", nullptr);
          _exit(127);
        }
        self.shared().flags[0].store(child);
        kill(getpid(), SIGKILL);
      }
      float in = 1, out = 0;
      const double begin = seconds();
      const hcommResult_t result =
          hcommAllReduce(&in, &out, 1, hcommFloat32, hcommSum, comm, nullptr);
      self.expect(result == hcommRemoteError, "remote error");
      self.expect(seconds() - begin < 5, "within 5 s");
      self.expect(std::string(hcommGetLastError(comm)).find("rank 1") != std::string::npos,
                  "a text that names rank 1");
      hcommCommDestroy(comm);
    });
    EXPECT_EQ(job.wait(), (Codes{0, 128 + SIGKILL})) << transport;
    kill(job.shared().flags[0].load(), SIGKILL);
  }
}

cpu_set_t mask_of(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(thread, sizeof mask, &mask);
  return mask;
}

TEST(Affinity, AFF_03_MasksOfTheUsersThreadsStay) {
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    cpu_set_t narrow;
    CPU_ZERO(&narrow);
    CPU_SET(0, &narrow);
    sched_setaffinity(0, sizeof narrow, &narrow);
    hcommComm_t comm = self.join();
    self.sum(comm);
    const cpu_set_t after = mask_of(0);
    self.expect(CPU_EQUAL(&narrow, &after), "the main thread's mask after init");
    DIR* tasks = opendir("/proc/self/task");
    while (const dirent* entry = readdir(tasks)) {
      if (entry->d_name[0] == '.') continue;
      const cpu_set_t mask = mask_of(std::atoi(entry->d_name));
      self.expect(CPU_EQUAL(&narrow, &mask), "helper threads within the inherited mask");
    }
    closedir(tasks);
    self.check(hcommCommDestroy(comm), "destroy");
    const cpu_set_t end = mask_of(0);
    self.expect(CPU_EQUAL(&narrow, &end), "the main thread's mask after destroy");
  }), (Codes{0, 0}));
}

// Three ranks wait two seconds for the fourth: what they burn meanwhile is the first millisecond.
TEST(Affinity, AFF_05_AWaitingRankSleeps) {
  for (const char* transport : {"shm", "tcp"}) {
    EXPECT_EQ(run_processes(4, [&](const Process& self) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = transport;
      hcommComm_t comm = self.join(&config);
      self.sum(comm);
      if (self.rank() == 3) {
        timespec two{2, 0};
        nanosleep(&two, nullptr);
      }
      rusage before{}, after{};
      getrusage(RUSAGE_SELF, &before);
      self.sum(comm, 1);
      getrusage(RUSAGE_SELF, &after);
      const auto used = [](const rusage& usage) {
        return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
      };
      self.expect(used(after) - used(before) < 0.1, "under 5 % of a core");
      self.check(hcommCommDestroy(comm), "destroy");
    }), (Codes{0, 0, 0, 0})) << transport;
  }
}

}  // namespace
}  // namespace hcomm::test
