// SPDX-License-Identifier: Apache-2.0
// What is special to shared memory: who is a neighbour, memory that is read in place,
// process_vm_readv and its refusals, what is left behind by the dead. Names of cases of the fault
// list are in brackets.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "conformance/processes.h"
#include "support/deny.h"
#include "transport/shm/node_memory.h"
#include "transport/shm/remote.h"

namespace hcomm::test {
namespace {

const Transport& shm() {
  return *find("shm");
}

class ShmTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = shm().probe(Config{});
    if (!reason.empty()) GTEST_SKIP() << "shm: " << reason;
  }
};

// -- neighbours ---------------------------------------------------------------------------------

// Endpoints in one process that differ in host key or token, as `places` say.
std::vector<std::unique_ptr<Endpoint>> meet(std::span<Place> places, int64_t limit_ms) {
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<std::string> addresses;
  for (const Place& each : places) {
    endpoints.push_back(shm().open(each));
    addresses.push_back(endpoints.back()->address());
  }
  std::vector<std::thread> threads;
  for (auto& each : endpoints)
    threads.emplace_back([&] { each->connect(addresses, Deadline::after_ms(limit_ms)); });
  for (std::thread& each : threads) each.join();
  return endpoints;
}

class NeighbourTest : public ShmTest {
 protected:
  NeighbourTest() {
    for (uint32_t i = 0; i < 3; i++) {
      places_[i].rank = i;
      places_[i].ranks = 3;
      places_[i].token[0] = 4711;
      places_[i].host_key = "here";
      places_[i].config = &config_;
      places_[i].reactor = &reactor_;
    }
  }
  Config config_;
  PollReactor reactor_;
  Place places_[3];
};

TEST_F(NeighbourTest, AnotherHostIsNoNeighbour) {
  places_[1].host_key = "there";
  const auto endpoints = meet(places_, 20'000);
  EXPECT_TRUE(endpoints[0]->reach(2) && endpoints[2]->reach(0));
  EXPECT_FALSE(endpoints[0]->reach(1) || endpoints[1]->reach(0) || endpoints[1]->reach(2));
  EXPECT_FALSE(endpoints[0]->reach(0)) << "itself";
}

// [SHM-09] An equal name proves nothing: only memory with the token inside does.
TEST_F(NeighbourTest, WhoDoesNotShareIsFoundOut) {
  places_[2].token[0] = 1;  // its letters are dropped, and it drops ours
  const auto endpoints = meet(places_, 300);
  EXPECT_TRUE(endpoints[0]->reach(1) && endpoints[1]->reach(0));
  EXPECT_FALSE(endpoints[2]->reach(0));
}

TEST_F(NeighbourTest, AnOwnerThatCannotBeReachedEndsTheWaitAtOnce) {
  auto endpoint = shm().open(places_[1]);
  const std::string gone = "hcomm-nobody 1 here";  // another network namespace looks like this
  const std::vector<std::string> addresses = {gone, endpoint->address(), ""};
  const int64_t start_ns = now_ns();
  endpoint->connect(addresses, Deadline::after_ms(20'000));
  EXPECT_LT(now_ns() - start_ns, 10'000'000'000);
  EXPECT_FALSE(endpoint->reach(0) || endpoint->reach(2));
  std::vector<pollfd> descriptors;
  int cap_ms = 5;
  EXPECT_TRUE(endpoint->prepare_sleep(descriptors, cap_ms));
  endpoint->after_sleep();
}

// [SHM-07] Huge pages that are not there: one error where demanded, nothing where wished for.
TEST_F(NeighbourTest, MissingHugePagesAreOneError) {
  std::ifstream file("/proc/sys/vm/nr_hugepages");
  int huge_pages = 0;
  if (!(file >> huge_pages) || huge_pages != 0) GTEST_SKIP() << huge_pages << " huge pages here";
  config_.huge_pages = Switch::on;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<std::string> addresses;
  for (const Place& each : places_) endpoints.push_back(shm().open(each));
  for (auto& each : endpoints) addresses.push_back(each->address());
  try {
    endpoints[0]->connect(addresses, soon());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::system);
    EXPECT_NE(error.text().find("HCOMM_HUGEPAGES=auto"), std::string::npos) << error.text();
  }
  endpoints[1]->connect(addresses, soon());  // told so, at once
  EXPECT_FALSE(endpoints[1]->reach(0));
}

// -- memory -------------------------------------------------------------------------------------

TEST(NodeMemoryTest, StaysWithinItsBudget) {
  EXPECT_LT(Layout::make(8, Config{}).area_bytes(), 15 * kMiB);
  EXPECT_LT(Layout::make(64, Config{}).area_bytes(), 48 * kMiB);
  EXPECT_LT(Layout::make(200, Config{}).area_bytes(), 48 * kMiB);
  Config config;
  for (const uint64_t bytes : {1u, 100u, 12'345u, 1'000'000u}) {
    config.ring_bytes = bytes;
    EXPECT_EQ(Layout::make(2, config).ring_bytes % kCacheLine, 0u);
    EXPECT_GE(Layout::make(2, config).ring_bytes, 256u);
  }
}

std::vector<std::string> shared_files() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator("/dev/shm", none))
    if (each.path().filename().string().find("hcomm") != std::string::npos)
      names.push_back(each.path());
  return names;
}

// [SHM-05] Nothing is left of ranks that were killed in the middle.
TEST_F(ShmTest, TheKilledLeaveNothing) {
  for (int trial = 0; trial < 3; trial++) {
    Processes processes(shm(), 3, Config{}, [](Rank& rank, Processes& all) {
      all.meet();
      std::vector<std::byte> data(kMiB), got(kMiB);
      for (uint32_t i = 0;; i++) {
        Sending sending({i, 1}, data);
        Receiving receiving({i, 1}, got);
        const uint32_t next = (rank.rank() + 1) % 3, last = (rank.rank() + 2) % 3;
        if (!exchange(rank.to(next), sending.message, rank.to(last), receiving).ok()) return;
      }
    });
    processes.await_meetings(3);
    std::vector<std::string> mailboxes;
    for (uint32_t i = 0; i < 3; i++) {
      const std::string address = processes.address(i);
      mailboxes.push_back(address.substr(0, address.find(' ')));
    }
    processes.kill_all();
    std::stringstream sockets;
    sockets << std::ifstream("/proc/net/unix").rdbuf();
    for (const std::string& each : mailboxes)
      EXPECT_EQ(sockets.str().find(each), std::string::npos) << each;
  }
  EXPECT_TRUE(shared_files().empty());
}

// -- in place -----------------------------------------------------------------------------------

Sending sending_exported(Rank& rank, Label label, std::span<std::byte> bytes) {
  return {label, bytes, rank.memory().find(bytes.data(), bytes.size())};
}

std::span<std::byte> allocate(Rank& rank, size_t bytes, uint64_t seed) {
  auto* base = static_cast<std::byte*>(rank.memory().allocate(bytes));
  const std::vector<std::byte> data = pattern(bytes, seed);
  std::copy(data.begin(), data.end(), base);
  return {base, bytes};
}

// Ranks of one process read the very memory of the sender, which learns when they are done.
TEST_F(ShmTest, SharedMemoryIsReadWhereItLies) {
  Fleet fleet(shm(), 2);
  const auto bytes = allocate(fleet[0], kMiB, 5);
  for (uint32_t i = 1; i <= 3; i++) {
    Sending sending = sending_exported(fleet[0], {i, 1}, bytes.subspan(i * 4096));
    Incoming incoming{.label = {i, 1}, .bytes = sending.message.bytes};
    View view;
    const Deadline deadline = soon();
    while (view.bytes == 0 && !deadline.passed()) {
      ASSERT_TRUE(fleet[0].to(1).send(sending.message).ok());
      ASSERT_TRUE(fleet[1].to(0).peek(incoming, view).ok());
    }
    EXPECT_EQ(view.data, bytes.data() + i * 4096);
    EXPECT_EQ(view.bytes, sending.message.bytes);
    ASSERT_TRUE(fleet[0].to(1).send(sending.message).ok());
    EXPECT_FALSE(sending.message.complete);
    fleet[1].to(0).release(incoming, view.bytes);
    EXPECT_TRUE(incoming.complete());
    ASSERT_TRUE(fleet[0].to(1).send(sending.message).ok());
    EXPECT_TRUE(sending.message.complete);
  }
}

// Once the peer has mapped an allocation, messages from it may follow one another.
TEST_F(ShmTest, KnownMemoryIsHandedOverAtOnce) {
  Fleet fleet(shm(), 2);
  const auto bytes = allocate(fleet[0], 64 * kKiB, 5);
  std::vector<std::byte> got(bytes.size());
  Sending first = sending_exported(fleet[0], {1, 1}, bytes);
  Receiving receiving({1, 1}, got);
  ASSERT_EQ(exchange(fleet[0].to(1), first.message, fleet[1].to(0), receiving), Status());
  Sending second = sending_exported(fleet[0], {2, 1}, bytes.first(32 * kKiB));
  Sending third = sending_exported(fleet[0], {3, 1}, bytes.subspan(32 * kKiB));
  for (Sending* each : {&second, &third}) {
    ASSERT_TRUE(fleet[0].to(1).send(each->message).ok());
    EXPECT_EQ(each->message.done, each->message.bytes);
    EXPECT_FALSE(each->message.complete);
  }
  for (uint32_t i = 0; i < 2; i++) {
    Receiving part({2 + i, 1}, std::span(got).subspan(i * 32 * kKiB, 32 * kKiB));
    ASSERT_EQ(finish_receive(fleet[1].to(0), part), Status());
  }
  for (Sending* each : {&third, &second})  // in any order
    EXPECT_EQ(finish_send(fleet[0].to(1), each->message), Status());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin()));
}

// Between processes, more allocations than are kept mapped, some of them freed meanwhile.
TEST_F(ShmTest, SharedMemoryIsMappedByOtherProcesses) {
  Processes processes(shm(), 3, Config{}, [](Rank& rank, Processes&) {
    const uint32_t next = (rank.rank() + 1) % 3, last = (rank.rank() + 2) % 3;
    for (uint32_t i = 1; i <= 300; i++) {
      const size_t size = 4096 + i * 8;
      const auto bytes = allocate(rank, size, i + rank.rank());
      std::vector<std::byte> got(size);
      Sending sending = sending_exported(rank, {i, 1}, bytes);
      Receiving receiving({i, 1}, got);
      ASSERT_EQ(exchange(rank.to(next), sending.message, rank.to(last), receiving), Status());
      ASSERT_TRUE(got == pattern(size, i + last)) << i;
      if (i % 2 == 0) {
        ASSERT_TRUE(rank.memory().free(bytes.data()));
      }
    }
  });
  EXPECT_TRUE(processes.succeeded());
}

// Memory that the owner does not hand over goes through the ring instead.
TEST_F(ShmTest, MemoryThatCannotBeMappedIsCopied) {
  Fleet fleet(shm(), 2);
  std::vector<std::byte> data = pattern(300'000, 1), got(data.size());
  for (uint32_t i = 1; i <= 2; i++) {
    Sending sending({i, 1}, data, Exported{.id = 99, .offset = 0, .bytes = data.size()});
    Receiving receiving({i, 1}, got);
    ASSERT_EQ(exchange(fleet[0].to(1), sending.message, fleet[1].to(0), receiving), Status());
    EXPECT_TRUE(got == data);
  }
}

// -- process_vm_readv ---------------------------------------------------------------------------

// Rank 0 sends to rank 1, which calls `before` first (after it has tried whether it may read).
void pull_between_processes(const std::function<void()>& before_channel,
                            const std::function<void()>& before_receive, bool* pulled) {
  Config config;
  config.pull = Switch::on;
  auto* seen = static_cast<std::atomic<bool>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Processes processes(shm(), 2, config, [&](Rank& rank, Processes& all) {
    const size_t bytes = 8 * kMiB + 24;
    std::vector<std::byte> data = pattern(bytes, 1), got(bytes);
    if (rank.rank() == 0) {
      Channel& channel = rank.to(1);
      all.meet();
      Sending sending({1, 1}, data);
      ASSERT_TRUE(channel.send(sending.message).ok());
      seen->store(sending.message.done == 0);  // else the ring has got something
      all.meet();
      EXPECT_EQ(finish_send(channel, sending.message), Status());
    } else {
      if (before_channel) before_channel();
      Channel& channel = rank.to(0);
      all.meet();
      all.meet();
      if (before_receive) before_receive();
      Receiving receiving({1, 1}, got);
      EXPECT_EQ(finish_receive(channel, receiving), Status());
      EXPECT_TRUE(got == data);
    }
  });
  EXPECT_TRUE(processes.succeeded());
  *pulled = seen->load();
  ::munmap(seen, 4096);
}

void deny_pulling() {
  ASSERT_TRUE(deny_system_call(SYS_process_vm_readv));
}

// Whether a process may read its sibling here.
bool siblings_may_read() {
  static uint64_t value = 0;  // at one address in both
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    value = 4711;
    const bool told = ::write(ends[1], "x", 1) == 1;
    while (told) ::pause();
    ::_exit(1);
  }
  char ready = 0;
  EXPECT_EQ(::read(ends[0], &ready, 1), 1);
  const pid_t reader = ::fork();
  if (reader == 0) {
    uint64_t seen = 0;
    pull_bytes(owner, reinterpret_cast<uint64_t>(&value), reinterpret_cast<std::byte*>(&seen),
               sizeof seen);
    ::_exit(seen == 4711 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(reader, &status, 0);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (const int end : ends) ::close(end);
  return status == 0;
}

TEST_F(ShmTest, LargeMessagesArePulledWhereAllowed) {
  bool pulled = false;
  pull_between_processes({}, {}, &pulled);
  EXPECT_EQ(pulled, siblings_may_read());
}

// [CMA-03] Half of the buffer cannot be read when the peer tries: it is sent again, whole.
TEST_F(ShmTest, AShortReadIsNotTakenForTheWhole) {
  if (!siblings_may_read()) GTEST_SKIP() << "process_vm_readv is not allowed here";
  Config config;
  config.pull = Switch::on;
  Processes processes(shm(), 2, config, [&](Rank& rank, Processes& all) {
    constexpr size_t kBytes = 4 * kMiB;
    Channel& channel = rank.to(1 - rank.rank());
    all.meet();
    if (rank.rank() == 0) {
      void* const page = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      const std::span<std::byte> data(static_cast<std::byte*>(page), kBytes);
      const std::vector<std::byte> bytes = pattern(kBytes, 1);
      std::copy(bytes.begin(), bytes.end(), data.begin());
      Sending sending({1, 1}, data);
      ASSERT_TRUE(channel.send(sending.message).ok());
      ASSERT_EQ(sending.message.done, 0u);  // a reference
      ASSERT_EQ(::mprotect(data.data() + kBytes / 2, kBytes / 2, PROT_NONE), 0);
      all.meet();
      all.meet();  // the peer has tried
      ASSERT_EQ(::mprotect(data.data() + kBytes / 2, kBytes / 2, PROT_READ), 0);
      EXPECT_EQ(finish_send(channel, sending.message), Status());
    } else {
      all.meet();
      std::vector<std::byte> got(kBytes);
      Receiving receiving({1, 1}, got);
      EXPECT_TRUE(channel.receive(receiving.message, receiving.segments).ok());
      EXPECT_FALSE(receiving.message.complete());
      all.meet();
      EXPECT_EQ(finish_receive(channel, receiving), Status());
      EXPECT_TRUE(got == pattern(kBytes, 1));
    }
  });
  EXPECT_TRUE(processes.succeeded());
}

// [CMA-01] A container's filter, seen at set-up.
TEST_F(ShmTest, WhoMayNotPullCopies) {
  bool pulled = true;
  pull_between_processes(deny_pulling, {}, &pulled);
  EXPECT_FALSE(pulled);
}

// [CMA-03] Permission lost after set-up: nothing short passes for the whole.
TEST_F(ShmTest, PermissionLostLaterFallsBackToTheRing) {
  bool pulled = false;
  pull_between_processes({}, deny_pulling, &pulled);
}

// By peek, in parts, in one process.
TEST_F(ShmTest, PulledViewsHoldTheWholeMessage) {
  Config config;
  config.pull = Switch::on;
  Fleet fleet(shm(), 2, config);
  std::vector<std::byte> data = pattern(700'008, 2), got;
  Channel &to = fleet[0].to(1), &from = fleet[1].to(0);
  Sending sending({1, 1}, data);
  Incoming incoming{.label = {1, 1}, .bytes = data.size()};
  const Deadline deadline = soon();
  while (!incoming.complete() && !deadline.passed()) {
    ASSERT_TRUE(to.send(sending.message).ok());
    View view;
    ASSERT_TRUE(from.peek(incoming, view).ok());
    if (view.bytes == 0) continue;
    const size_t part = std::max<size_t>(64, view.bytes / 2 / 8 * 8);
    got.insert(got.end(), view.data, view.data + std::min(part, view.bytes));
    from.release(incoming, std::min(part, view.bytes));
  }
  EXPECT_TRUE(got == data);
  EXPECT_EQ(finish_send(to, sending.message), Status());
}

// -- sleeping -----------------------------------------------------------------------------------

// Where no barrier can promise a wake-up, sleep is short.
TEST_F(ShmTest, SleepIsShortWithoutMembarrier) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!deny_system_call(SYS_membarrier)) ::_exit(0);
    int cap_ms = 1'000;
    {
      Fleet fleet(shm(), 2);
      std::vector<pollfd> descriptors;
      fleet[0].endpoint().prepare_sleep(descriptors, cap_ms);
      fleet[0].endpoint().after_sleep();
    }
    ::_exit(cap_ms <= 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace hcomm::test
