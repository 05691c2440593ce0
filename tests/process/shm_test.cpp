// SPDX-License-Identifier: Apache-2.0
// Reported faults of shared memory and of reading other processes, as small cases.
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <random>
#include <string>

#include "process/processes.h"
#include "support/deny.h"
#include "support/shell.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

// A /dev/shm of this process's own. False where namespaces are not allowed.
bool private_dev_shm(const char* options) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/dev/shm", "tmpfs", 0, options) == 0;
}

size_t entries(const char* path) {
  size_t count = 0;
  DIR* folder = opendir(path);
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

#define NEEDS_NAMESPACES()                                                                   \
  if (run_processes(1, [](const Process&) { _exit(private_dev_shm("size=1m") ? 0 : 1); }) != \
      Codes{0})                                                                              \
  GTEST_SKIP() << "mount namespaces are not allowed here"

TEST(SharedMemory, SHM_01_ASmallDevShmIsEnough) {
  NEEDS_NAMESPACES();
  EXPECT_EQ(run_processes(4, [](const Process& self) {
    self.expect(private_dev_shm("size=1m"), "a private /dev/shm");
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = "shm";
    hcommComm_t comm = self.join(&config);
    self.sum(comm, 4 << 20);
    self.expect(entries("/dev/shm") == 0, "nothing in /dev/shm");
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0, 0, 0}));
}

// Nothing of ours lives in a session folder: with every one of them tiny it works all the same.
TEST(SharedMemory, SHM_03_NoFolderIsNeeded) {
  NEEDS_NAMESPACES();
  EXPECT_EQ(run_processes(8, [](const Process& self) {
    self.expect(private_dev_shm("size=256k"), "a private /dev/shm");
    self.expect(mount("none", "/tmp", "tmpfs", 0, "size=256k") == 0, "a private /tmp");
    self.expect(mount("none", "/run", "tmpfs", 0, "size=256k") == 0, "a private /run");
    hcommComm_t comm = self.join();
    self.sum(comm, 100000);
    self.expect(entries("/tmp") + entries("/run") + entries("/dev/shm") == 0, "no file");
    self.check(hcommCommDestroy(comm), "destroy");
  }), Codes(8, 0));
}

// One rank, or all, die in the middle: survivors get an error, nothing is left, the next job
// starts. 3 times each, or HCOMM_TEST_ROUNDS.
TEST(SharedMemory, SHM_05_KillsLeaveNothing) {
  const unsigned seed = 20261130;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const size_t before = entries("/dev/shm");
  for (int round = 0; round < 2 * rounds(3); round++) {
    Job job;
    job.start(3, [](const Process& self) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = "shm";
      hcommComm_t comm = self.join(&config);
      std::vector<float> in(1 << 20, 1.0f), out(1 << 20);
      self.shared().arrived.fetch_add(1);
      for (;;)
        if (hcommAllReduce(in.data(), out.data(), in.size(), hcommFloat32, hcommSum, comm,
                           nullptr) == hcommRemoteError)
          _exit(7);
    });
    while (job.shared().arrived.load() < 3) sched_yield();
    usleep(static_cast<useconds_t>(random() % 5000));  // a random moment, not an order of events
    const bool all = round % 2 == 1;
    for (int rank = 0; rank < 3; rank++)
      if (all || rank == 1) kill(job.pid(rank), SIGKILL);
    ASSERT_EQ(job.wait(), all ? Codes(3, 137) : (Codes{7, 137, 7})) << "round " << round;
  }
  EXPECT_EQ(entries("/dev/shm"), before);
}

TEST(SharedMemory, SHM_09_SeparateMountNamespacesWorkTogether) {
  NEEDS_NAMESPACES();
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    self.expect(private_dev_shm("size=1m"), "a /dev/shm of its own each");
    hcommComm_t comm = self.join();
    self.sum(comm, 100000);
    // The memory has no name, so that it is shared all the same; whatever is taken is said.
    char text[128];
    self.check(hcommCommExplain(comm, "all_reduce", 100000, hcommFloat32, text, sizeof text),
               "plan");
    self.expect(std::string(text).ends_with(" shm"), text);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0}));
}

// Each rank's log has a file of its own; how many of its lines say that it may not pull.
class Logs {
 public:
  Logs() { std::filesystem::permissions(folder_.path(), std::filesystem::perms::all); }
  void log_here(const Process& self) const {
    setenv("HCOMM_LOG", "info", 1);
    setenv("HCOMM_LOG_FILE", path(self.rank()).c_str(), 1);
  }
  size_t refusals(int rank) const {
    const std::string text = file_text(path(rank));
    const std::string_view wanted = "may not be read by process_vm_readv";
    size_t count = 0;
    for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) count++;
    return count;
  }

 private:
  std::string path(int rank) const { return folder_.path() / std::to_string(rank); }
  TemporaryFolder folder_;
};

TEST(Pull, CMA_01_WithoutPermissionItGoesThroughSharedMemory) {
  for (const std::string pull : {"on", "auto"}) {
    const Logs logs;
    EXPECT_EQ(run_processes(3, [&](const Process& self) {
      logs.log_here(self);
      setenv("HCOMM_SHM_PULL", pull.c_str(), 1);
      setenv("HCOMM_TRANSPORT", "shm", 1);
      self.expect(deny_system_call(SYS_process_vm_readv), "a filter");
      hcommComm_t comm = self.join();
      self.sum(comm, 2 << 20);
      self.check(hcommCommDestroy(comm), "destroy");
    }), (Codes{0, 0, 0})) << pull;
    for (int rank = 0; rank < 3; rank++)
      EXPECT_EQ(logs.refusals(rank), pull == "on" ? 1u : 0u) << "rank " << rank << " " << pull;
  }
}

// Rank 1 cannot be read (as under yama's ptrace scope); rank 0 can.
TEST(Pull, CMA_03_OneUnreadableProcess) {
  for (const std::string pull : {"on", "auto"}) {
    const Logs logs;
    EXPECT_EQ(run_processes(2, [&](const Process& self) {
      logs.log_here(self);
      setenv("HCOMM_SHM_PULL", pull.c_str(), 1);
      if (geteuid() == 0)  // who may do all may also read
        self.expect(setgid(65534) == 0 && setuid(65534) == 0, "another user");
      prctl(PR_SET_DUMPABLE, self.rank() == 0 ? 1 : 0);
      hcommComm_t comm = self.join();
      std::vector<char> data(4 << 20, static_cast<char>(self.rank() + 1));
      for (int from = 0; from < 2; from++) {
        if (self.rank() == from)
          self.check(hcommSend(data.data(), data.size(), hcommInt8, 1 - from, comm, nullptr),
                     "send", comm);
        else
          self.check(hcommRecv(data.data(), data.size(), hcommInt8, from, comm, nullptr), "recv",
                     comm);
      }
      for (const char byte : data) self.expect(byte == 1, "all bytes");
      self.check(hcommCommDestroy(comm), "destroy");
    }), (Codes{0, 0})) << pull;
    EXPECT_EQ(logs.refusals(0), pull == "on" ? 1u : 0u) << pull;
  }
}

// auto falls back without a word; on is one error or works, never a signal.
TEST(SharedMemory, SHM_07_HugePagesThatAreNotThere) {
  for (const char* pages : {"auto", "off"}) {
    char path[] = "/tmp/hcomm-test-XXXXXX";
    const int said = mkstemp(path);
    EXPECT_EQ(run_processes(2, [&](const Process& self) {
      dup2(said, STDERR_FILENO);
      setenv("HCOMM_HUGEPAGES", pages, 1);
      hcommComm_t comm = self.join();
      self.sum(comm, 1 << 20);
      void* memory = nullptr;
      self.check(hcommMemAlloc(&memory, 8 << 20, nullptr), "memory");
      std::memset(memory, 1, 8 << 20);
      self.check(hcommMemFree(memory), "free");
      self.check(hcommCommDestroy(comm), "destroy");
    }), (Codes{0, 0}));
    EXPECT_EQ(lseek(said, 0, SEEK_END), 0) << "something was said with " << pages;
    close(said);
    unlink(path);
  }
}

TEST(SharedMemory, SHM_07_HugePagesThatAreAskedFor) {
  Job job;
  job.start(2, [](const Process& self) {
    setenv("HCOMM_HUGEPAGES", "on", 1);
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = "shm";
    hcommComm_t comm = nullptr;
    const hcommResult_t result =
        hcommCommInitRankConfig(&comm, 2, self.id(), self.rank(), &config);
    const std::string text = hcommGetLastError(nullptr);
    self.shared().flags[0].fetch_add(result == hcommSuccess);
    self.shared().flags[1].fetch_add(text.find("HCOMM_HUGEPAGES=auto") != std::string::npos);
    if (result == hcommSuccess) self.sum(comm, 1 << 20);
    self.shared().arrived.fetch_add(1);
    while (self.shared().arrived.load() < 2) sched_yield();  // nobody is missed before
    self.check(hcommCommDestroy(comm), "destroy");
  });
  EXPECT_EQ(job.wait(), (Codes{0, 0}));
  const int made = job.shared().flags[0].load();
  EXPECT_TRUE(made == 2 || (made == 0 && job.shared().flags[1].load() > 0))
      << made << " ranks came up";
}

}  // namespace
}  // namespace hcomm::test
