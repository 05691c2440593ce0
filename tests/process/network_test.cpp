// SPDX-License-Identifier: Apache-2.0
// Reported faults of addresses, as small cases: two hosts made of network, name and mount
// namespaces, joined by a virtual cable. Needs root and the ip command; skips with the reason
// otherwise.
#include <sched.h>
#include <sys/mount.h>

#include <cstdlib>
#include <string>

#include "process/processes.h"

namespace hcomm::test {
namespace {

using Codes = std::vector<int>;

bool run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

struct Lab {
  const char* names[2] = {"node1.a", "node1.b"};
  const char* extra = "";         // run by each host in its own network
  const char* interfaces = nullptr;  // HCOMM_SOCKET_IFNAME
};

// Becomes a host of its own: name, /etc/hosts that maps the name to 127.0.1.1, /dev/shm, network.
void become_host(const Process& self, const Lab& lab) {
  const char* name = lab.names[self.rank()];
  self.expect(unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) == 0, "namespaces");
  self.expect(sethostname(name, std::strlen(name)) == 0, "a host name");
  self.expect(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  self.expect(mount("none", "/dev/shm", "tmpfs", 0, "size=1m") == 0, "a /dev/shm");
  self.expect(mount("none", "/mnt", "tmpfs", 0, "size=1m") == 0, "a folder");
  const std::string hosts = std::string("printf '127.0.0.1 localhost\\n127.0.1.1 ") + name +
                            "\\n' > /mnt/hosts";
  self.expect(run(hosts) && mount("/mnt/hosts", "/etc/hosts", nullptr, MS_BIND, nullptr) == 0,
              "an /etc/hosts");
  self.shared().flags[self.rank()].store(1);
  while (self.shared().flags[2].load() == 0) sched_yield();  // the cable is there
  const std::string number = std::to_string(self.rank() + 1);
  self.expect(run("ip link set lo up && ip link set cable" + number + " name eth0 && "
                  "ip addr add 10.77.0." + number + "/24 dev eth0 && ip link set eth0 up"),
              "an address");
  self.expect(*lab.extra == '\0' || run(lab.extra), "the extra interface");
  self.shared().arrived.fetch_add(1);
  while (self.shared().arrived.load() < 2) sched_yield();
  if (lab.interfaces) setenv("HCOMM_SOCKET_IFNAME", lab.interfaces, 1);
}

Codes run_lab(const Lab& lab) {
  Job job;
  job.start(2, [&](const Process& self) {
    become_host(self, lab);
    const double begin = seconds();
    hcommComm_t comm = self.join();
    self.sum(comm, 16);
    self.expect(seconds() - begin < 10, "within 10 s");
    char text[128];
    self.check(hcommCommExplain(comm, "all_reduce", 16, hcommFloat32, text, sizeof text), "plan");
    self.expect(std::string(text).find("tcp") != std::string::npos, "TCP between two hosts");
    self.check(hcommCommDestroy(comm), "destroy");
  });
  const double limit = seconds() + 10;
  while ((job.shared().flags[0].load() == 0 || job.shared().flags[1].load() == 0) &&
         seconds() < limit)
    sched_yield();
  const bool joined =
      run("ip link add cable1 netns " + std::to_string(job.pid(0)) +
          " type veth peer name cable2 netns " + std::to_string(job.pid(1)));
  EXPECT_TRUE(joined) << "ip link add type veth";
  job.shared().flags[2].store(1);
  return job.wait();
}

#define NEEDS_A_LAB()                                                                       \
  if (!run("command -v ip >/dev/null")) GTEST_SKIP() << "no ip command (package iproute2)"; \
  if (run_processes(1, [](const Process&) {                                                 \
        _exit(unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) == 0 ? 0 : 1);             \
      }) != Codes{0})                                                                       \
  GTEST_SKIP() << "network namespaces are not allowed here"

TEST(Network, NET_01_AHostNameThatMeansLoopback) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_lab({.names = {"alpha", "beta"}}), (Codes{0, 0}));
}

TEST(Network, NET_03_ExcludingDockerDoesNotPromoteLoopback) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_lab({.names = {"alpha", "beta"},
                     .extra = "ip link add docker0 type veth peer name docker1 && "
                              "ip addr add 172.17.0.1/16 dev docker0 && "
                              "ip link set docker0 up && ip link set docker1 up",
                     .interfaces = "^docker0"}),
            (Codes{0, 0}));
}

TEST(Network, NET_05_EqualShortNamesAreTwoHosts) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_lab({}), (Codes{0, 0}));
}

}  // namespace
}  // namespace hcomm::test
