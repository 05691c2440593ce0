// SPDX-License-Identifier: Apache-2.0
// What ranks measure of their links when a communicator is made: the same on all of them, and sane,
// also on a machine that has other work.
#include "comm/calibrate.h"

#include <atomic>
#include <cmath>
#include <numeric>

#include "comm/control/host.h"
#include "comm/job_threads.h"
#include "policy/policy.h"

namespace hcomm::comm {
namespace {

// Threads that burn the cores while it lives.
class Burners {
 public:
  explicit Burners(int number) {
    for (int i = 0; i < number; i++)
      threads_.emplace_back([this] {
        while (!ending_.load(std::memory_order_relaxed)) {
        }
      });
  }
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;
  ~Burners() {
    ending_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

// What each rank has at the end of a calibration.
std::vector<schedule::Machine> calibrated(uint32_t ranks, const char* transport) {
  Crew crew(ranks);
  SharedMemory memory(Switch::automatic);
  std::vector<schedule::Machine> machines(ranks);
  in_threads(ranks, [&](uint32_t rank) {
    Config config = loopback_config();
    config.transports = transport;
    const Deadline deadline = Deadline::after_ms(20'000);
    Control& control = *crew.controls[rank];
    std::vector<uint32_t> members(ranks);
    std::iota(members.begin(), members.end(), 0u);
    const Circle circle{9, "the test", rank, members};
    Links links({.rank = rank, .ranks = ranks, .communicator = 9, .token = {1, 2},
                 .host_key = host_key(config), .config = &config, .reactor = &crew.service,
                 .memory = &memory},
                control, circle, deadline);
    machines[rank].ranks = ranks;
    machines[rank].node.assign(ranks, 0);
    calibrate(machines[rank], links, {circle, &control, deadline, true});
    control.exchange(circle, "ends", "done", deadline);  // nobody's links end before
  });
  return machines;
}

class Calibration : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(Calibration, IsEqualOnAllRanksAndSane) {
  const Burners burners(std::get<1>(GetParam()));
  for (const uint32_t ranks : {2u, 5u}) {
    const auto machines = calibrated(ranks, std::get<0>(GetParam()));
    for (const schedule::Machine& machine : machines) {
      EXPECT_EQ(policy::hash(policy::inputs_from(loopback_config(), machine)),
                policy::hash(policy::inputs_from(loopback_config(), machines[0])));
      ASSERT_EQ(machine.links.size(), size_t{ranks} * ranks);
      for (size_t i = 0; i < machine.links.size(); i++) {
        if (i % (ranks + 1) == 0) continue;  // to itself
        const schedule::Link& link = machine.links[i];
        EXPECT_TRUE(link.latency_us > 0 && link.latency_us < 1e6) << link.latency_us;
        EXPECT_TRUE(link.us_per_byte > 0 && link.us_per_byte < 1) << link.us_per_byte;
      }
      EXPECT_TRUE(machine.copy_us_per_byte > 0 && machine.copy_us_per_byte < 1);
      EXPECT_TRUE(machine.reduce_us_per_byte > 0 && machine.reduce_us_per_byte < 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Links, Calibration,
                         testing::Combine(testing::Values("shm", "tcp"), testing::Values(0, 4)),
                         [](const auto& place) {
                           return std::string(std::get<0>(place.param)) +
                                  (std::get<1>(place.param) > 0 ? "_loaded" : "");
                         });

}  // namespace
}  // namespace hcomm::comm
