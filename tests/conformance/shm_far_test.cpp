// SPDX-License-Identifier: Apache-2.0
// The ring of shared memory between far cores: what is copied past the caches is there before the
// line that announces it.
#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>

#include "conformance/fleet.h"
#include "transport/shm/channel.h"

namespace hcomm::test {
namespace {

// The core with this number among those that we may use; false where there are fewer.
bool pin(int number) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &allowed) || number-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }
  return false;
}

TEST(ShmFar, StreamedFragmentsAreWholeWhenTheyAreAnnounced) {
  constexpr size_t kBytes = 64 * kKiB;
  constexpr int kMessages = 5000;
  const uint64_t token[2] = {1, 2};
  const std::shared_ptr<NodeMemory> memory = NodeMemory::make({2, 256 * kKiB}, token, Switch::off);
  PeerMaps maps([](uint32_t, uint64_t) { return ECONNREFUSED; });
  ShmPeer peers[2];
  std::unique_ptr<ShmChannel> channels[2];
  for (uint32_t i = 0; i < 2; i++) {
    peers[i].member = 1 - i;
    peers[i].head = &memory->head(1 - i);
    // Every core is far.
    channels[i] = std::make_unique<ShmChannel>(
        ChannelPlace{.memory = memory.get(), .self = i, .slot = 0, .far_ns = 0}, peers[i], maps);
  }
  std::thread sender([&] {
    pin(1);
    std::vector<uint64_t> data(kBytes / 8);
    for (int i = 0; i < kMessages; i++) {
      std::fill(data.begin(), data.end(), uint64_t{0x0101010101010101} * (i % 251));
      Sending sending({1, 2}, std::as_writable_bytes(std::span(data)));
      if (!finish_send(*channels[0], sending.message).ok()) return;
    }
  });
  pin(0);
  std::vector<uint64_t> got(kBytes / 8);
  int torn = 0;
  for (int i = 0; i < kMessages; i++) {
    Receiving receiving({1, 2}, std::as_writable_bytes(std::span(got)));
    ASSERT_TRUE(finish_receive(*channels[1], receiving).ok());
    const uint64_t wanted = uint64_t{0x0101010101010101} * (i % 251);
    torn += std::any_of(got.begin(), got.end(), [&](uint64_t word) { return word != wanted; });
  }
  sender.join();
  EXPECT_EQ(torn, 0) << "of " << kMessages;
}

}  // namespace
}  // namespace hcomm::test
