// SPDX-License-Identifier: Apache-2.0
// Reported faults of addresses, as small cases: two hosts made of network, name and mount
// namespaces, joined by a virtual cable. Needs root and the ip command; skips with the reason
// otherwise.
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

#include "process/processes.h"
#include "support/held_port.h"
#include "support/shell.h"

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
  std::string log;                   // HCOMM_LOG_FILE, with the rank behind it
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
  // A link that has just come up is a last resort until the kernel has told so.
  const double limit = seconds() + 10;
  while (!run("ip link show dev eth0 | grep -q 'state UP'") && seconds() < limit) sched_yield();
  if (lab.interfaces) setenv("HCOMM_SOCKET_IFNAME", lab.interfaces, 1);
  if (lab.log.empty()) return;
  setenv("HCOMM_LOG", "info", 1);
  setenv("HCOMM_LOG_FILE", (lab.log + std::to_string(self.rank())).c_str(), 1);
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
  const TemporaryFolder folder;
  const std::string log = folder.path() / "log";
  EXPECT_EQ(run_lab({.names = {"alpha", "beta"},
                     .extra = "ip link add docker0 type veth peer name docker0b && "
                              "ip addr add 172.17.0.1/16 dev docker0 && "
                              "ip link set docker0 up && ip link set docker0b up",
                     .interfaces = "^docker0",
                     .log = log}),
            (Codes{0, 0}));
  for (const std::string rank : {"0", "1"}) {
    const std::string text = file_text(log + rank);
    const size_t at = text.find("tcp: rank " + rank + " listens at ");
    ASSERT_NE(at, text.npos) << text;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_NE(line.find("offers 10.77.0." + std::to_string(std::stoi(rank) + 1) + ":"), line.npos)
        << line;
  }
}

void become_host_without_network(const Process& self) {
  self.expect(unshare(CLONE_NEWNET) == 0 && run("ip link set lo up"), "a network of its own");
}

// The address that is offered, and what to change, within 10 s.
TEST(Network, NET_01_LoopbackAloneReachesNoOtherHost) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_processes(2, [](const Process& self) {
    become_host_without_network(self);
    if (self.rank() == 0) {
      self.check(hcommGetUniqueId(&self.shared().id), "an id");
      self.shared().id_ready.store(1);
    }
    while (self.shared().id_ready.load() == 0) sched_yield();
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.init_timeout_ms = 2000;
    hcommComm_t comm = nullptr;
    const double begin = seconds();
    self.expect(hcommCommInitRankConfig(&comm, 2, self.shared().id, self.rank(), &config) !=
                    hcommSuccess, "an error");
    self.expect(seconds() - begin < 10, "within 10 s");
    const std::string text = hcommGetLastError(nullptr);
    const bool told = text.find("127.0.0.1:") != text.npos &&
                      text.find("HCOMM_SOCKET_IFNAME") != text.npos;
    self.expect(self.rank() == 0 || told, text.c_str());
  }), (Codes{0, 0}));
}

TEST(Network, NET_01_LoopbackAloneServesOneHost) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_processes(1, [](const Process& self) {
    become_host_without_network(self);
    for (const char* transport : {"shm", "tcp"})
      self.expect(run_processes(2, [&](const Process& rank) {
        setenv("HCOMM_TRANSPORT", transport, 1);
        hcommComm_t comm = rank.join();
        rank.sum(comm);
        rank.check(hcommCommDestroy(comm), "destroy");
      }) == Codes{0, 0}, transport);
  }), Codes{0});
}

hcommComm_t join_world(const Process& self, const std::string& root) {
  setenv("HCOMM_RANK", std::to_string(self.rank()).c_str(), 1);
  setenv("HCOMM_SIZE", std::to_string(self.ranks()).c_str(), 1);
  setenv("HCOMM_ROOT", root.c_str(), 1);
  setenv("HCOMM_TRANSPORT", "tcp", 1);
  hcommComm_t comm = nullptr;
  self.check(hcommCommInitWorld(&comm, nullptr), "init");
  return comm;
}

// The root's name has an address that leads nowhere before the one that serves.
TEST(Network, NET_07_EveryAddressOfANameIsTried) {
  NEEDS_A_LAB();
  const HeldPort port;
  const TemporaryFolder folder;
  folder.write("hosts", "127.0.0.1 localhost\n::2 twofold\n127.0.0.1 twofold\n");
  const std::string hosts = folder.path() / "hosts";
  EXPECT_EQ(run_processes(2, [&](const Process& self) {
    self.expect(unshare(CLONE_NEWNS) == 0 &&
                    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0,
                "an /etc/hosts");
    setenv("HCOMM_SECRET", "0123456789abcdef0123456789abcdef", 1);
    const double begin = seconds();
    hcommComm_t comm = join_world(self, "twofold:" + std::to_string(port.port()));
    self.expect(seconds() - begin < 5, "within 5 s");
    self.sum(comm);
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0}));
}

// The TCP sockets of this process: calls seen(listens, address of this end).
void for_each_socket(const std::function<void(bool, const sockaddr_storage&)>& seen) {
  for (int fd = 3; fd < 1024; fd++) {
    int listens = 0;
    sockaddr_storage here{};
    socklen_t size = sizeof listens, bytes = sizeof here;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&here), &bytes) != 0 ||
        (here.ss_family != AF_INET && here.ss_family != AF_INET6))
      continue;
    seen(listens != 0, here);
  }
}

TEST(Network, NET_09_AJobOnLoopbackListensThereOnly) {
  const HeldPort port;
  EXPECT_EQ(run_processes(2, [&](const Process& self) {
    hcommComm_t comm = join_world(self, port.address());
    self.sum(comm);
    int listeners = 0;
    for_each_socket([&](bool listens, const sockaddr_storage& here) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(here);
      if (!listens) return;
      self.expect(here.ss_family == AF_INET && v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK),
                  "127.0.0.1 only");
      listeners++;
    });
    self.expect(listeners == (self.rank() == 0 ? 2 : 1), "data ports, and the root");
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0}));
}

TEST(Network, DataMoveOverIpv6) {
  if (!run("grep -q 00000000000000000000000000000001 /proc/net/if_inet6"))
    GTEST_SKIP() << "no ::1 here";
  EXPECT_EQ(run_processes(3, [](const Process& self) {
    setenv("HCOMM_SOCKET_FAMILY", "ipv6", 1);
    setenv("HCOMM_SOCKET_IFNAME", "lo", 1);
    hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
    config.transports = "tcp";
    hcommComm_t comm = self.join(&config);
    self.sum(comm, 1 << 20);
    int sockets = 0;
    for_each_socket([&](bool, const sockaddr_storage& here) {
      self.expect(here.ss_family == AF_INET6 &&
                      IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(here).sin6_addr),
                  "::1 only");
      sockets++;
    });
    self.expect(sockets >= 4, "a listener, the control connection, data");
    self.check(hcommCommDestroy(comm), "destroy");
  }), (Codes{0, 0, 0}));
}

TEST(Network, NET_05_EqualShortNamesAreTwoHosts) {
  NEEDS_A_LAB();
  EXPECT_EQ(run_lab({}), (Codes{0, 0}));
}

}  // namespace
}  // namespace hcomm::test
