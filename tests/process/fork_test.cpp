// SPDX-License-Identifier: Apache-2.0
// Reported faults of fork, exec, affinity and waiting, as small cases with their identifiers.
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
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

// What a parent has at the time of the fork.
struct Inherited {
  hcommComm_t comm;
  hcommStream_t stream;
  hcommRedOp_t twice;
  void* memory;
};

// 0, or the number of the first call that a child was allowed to make.
int first_call_allowed(const Inherited& its) {
  int number = 0, allowed = 0, value = 1, out = 0;
  const auto refused = [&](hcommResult_t result) {
    number++;
    if (result != hcommInvalidUsage && result != hcommInvalidArgument && allowed == 0)
      allowed = number;
  };
  const size_t counts[] = {1, 1};
  const char* text = nullptr;
  char room[64];
  void* handle = nullptr;
  hcommRedOp_t op;
  hcommComm_t child = nullptr;
  hcommResult_t state;
  hcommErrorInfo_t info{.size = sizeof info};
  const auto [comm, stream, twice, memory] = its;
  for (const hcommStream_t on : {static_cast<hcommStream_t>(nullptr), stream}) {
    refused(hcommAllReduce(&value, &out, 1, hcommInt32, hcommSum, comm, on));
    refused(hcommAllReduce(&value, &out, 1, hcommInt32, twice, comm, on));
    refused(hcommAllGatherV(&value, &out, counts, nullptr, hcommInt8, comm, on));
    refused(hcommBarrier(comm, on));
    refused(hcommSend(&value, 1, hcommInt32, 0, comm, on));
    refused(hcommRecv(&out, 1, hcommInt32, 0, comm, on));
  }
  hcommGroupStart();
  refused(hcommAllReduce(&value, &out, 1, hcommInt32, hcommSum, comm, nullptr));
  refused(hcommGroupEnd());
  refused(hcommCommSplit(comm, 0, 0, &child, nullptr));
  refused(hcommCommShrink(comm, nullptr, 0, &child, nullptr, HCOMM_SHRINK_ABORT));
  refused(hcommCommFinalize(comm));
  refused(hcommCommAbort(comm));
  refused(hcommCommRevoke(comm));
  refused(hcommCommGetAsyncError(comm, &state));
  refused(hcommCommGetErrorInfo(comm, &info));
  refused(hcommCommCount(comm, &out));
  refused(hcommCommUserRank(comm, &out));
  refused(hcommCommName(comm, &text));
  refused(hcommCommDevice(comm, &text));
  refused(hcommCommExplain(comm, "barrier", 0, hcommInt8, room, sizeof room));
  refused(hcommCommRegister(comm, &value, 4, &handle));
  refused(hcommCommDeregister(comm, &value));
  refused(hcommRedOpCreatePreMulSum(&op, &value, hcommInt32, comm));
  refused(hcommRedOpDestroy(twice, comm));
  refused(hcommStreamSynchronize(stream));
  refused(hcommStreamQuery(stream));
  refused(hcommStreamDestroy(stream));
  refused(hcommMemFree(memory));
  refused(hcommCommDestroy(comm));
  return allowed;
}

class ForkOver : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, ForkOver, testing::Values("shm", "tcp"),
                         [](const auto& place) { return std::string(place.param); });

// Children that leave by either way, and one that calls whatever there is with what it inherited.
TEST_P(ForkOver, SIG_01_AForkedChildMayExitButNotCall) {
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = GetParam();
    Inherited mine{};
    mine.comm = self.join(&config);
    const int two = 2;
    int one = 1, out = 0;
    self.check(hcommStreamCreate(&mine.stream, nullptr), "stream");
    self.check(hcommRedOpCreatePreMulSum(&mine.twice, &two, hcommInt32, mine.comm), "operator");
    self.check(hcommMemAlloc(&mine.memory, 1 << 16, nullptr), "memory");
    self.sum(mine.comm);
    self.expect(run_child([] { return 0; }) == 0, "a child that only ends");
    self.expect(run_child([]() -> int { std::exit(0); }) == 0, "a child that exits");
    self.expect(run_child([&] { return first_call_allowed(mine); }) == 0,
                "that all calls are refused");
    self.expect(run_child([&]() -> int { std::exit(first_call_allowed(mine)); }) == 0,
                "that all calls are refused, and exit");
    self.sum(mine.comm);
    self.check(hcommAllReduce(&one, &out, 1, hcommInt32, mine.twice, mine.comm, mine.stream),
               "on the stream");
    self.check(hcommStreamSynchronize(mine.stream), "synchronize");
    self.expect(out == 4, "the right sum");
    self.check(hcommMemFree(mine.memory), "memory");
    self.check(hcommStreamDestroy(mine.stream), "stream");
    self.check(hcommCommDestroy(mine.comm), "destroy");
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
                    self.meet();  // processes of tests end at once, rank 0's hub with it
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

int first_core(const cpu_set_t& mask) {
  int core = 0;
  while (!CPU_ISSET(core, &mask)) core++;
  return core;
}

TEST(Affinity, AFF_03_MasksOfTheUsersThreadsStay) {
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    cpu_set_t narrow;
    CPU_ZERO(&narrow);
    CPU_SET(first_core(mask_of(0)), &narrow);
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

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

class Waiting : public testing::TestWithParam<std::tuple<const char*, bool>> {};
INSTANTIATE_TEST_SUITE_P(
    Over, Waiting, testing::Combine(testing::Values("shm", "tcp"), testing::Bool()),
    [](const auto& place) {
      return std::string(std::get<0>(place.param)) +
             (std::get<1>(place.param) ? "_recv" : "_allreduce");
    });

// Three ranks wait two seconds (HCOMM_TEST_ROUNDS: as many) for the fourth, in a collective or in a
// receive: what they burn meanwhile is the first millisecond.
TEST_P(Waiting, AFF_05_AWaitingRankSleeps) {
  const char* const transport = std::get<0>(GetParam());
  const bool in_recv = std::get<1>(GetParam());
  const int wait_s = rounds(2);
  EXPECT_EQ(run_processes(4, [&](const Process& self) {
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = transport;
    hcommComm_t comm = self.join(&config);
    self.sum(comm);
    if (self.rank() == 3) {
      timespec time{wait_s, 0};
      nanosleep(&time, nullptr);
    }
    const double before = cpu_seconds();
    int data = 3;
    if (!in_recv) {
      self.sum(comm, 1);
    } else if (self.rank() < 3) {
      self.check(hcommRecv(&data, 1, hcommInt32, 3, comm, nullptr), "receive", comm);
    } else {
      for (int peer = 0; peer < 3; peer++)
        self.check(hcommSend(&data, 1, hcommInt32, peer, comm, nullptr), "send", comm);
    }
    self.expect(cpu_seconds() - before < 0.05 * wait_s, "under 5 % of a core");
    self.meet();  // processes of tests end at once, rank 0's hub with it
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0, 0, 0}));
}

}  // namespace
}  // namespace hcomm::test
