// SPDX-License-Identifier: Apache-2.0
// What ranks measure of their links when a communicator is made: the same on all of them, and sane,
// also on a machine that has other work; and what a later job takes from an earlier one.
#include "comm/calibration/calibrate.h"

#include <atomic>
#include <limits>
#include <numeric>
#include <sstream>

#include "base/bytes.h"
#include "comm/calibration/measure.h"
#include "comm/control/host.h"
#include "comm/job_threads.h"
#include "policy/policy.h"
#include "support/shell.h"

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
std::vector<schedule::Machine> calibrated(uint32_t ranks, const Config& config) {
  Crew crew(ranks);
  SharedMemory memory(Switch::automatic);
  std::vector<schedule::Machine> machines(ranks);
  in_threads(ranks, [&](uint32_t rank) {
    const Deadline deadline = Deadline::after_ms(20'000);
    Control& control = *crew.controls[rank];
    std::vector<uint32_t> members(ranks);
    std::iota(members.begin(), members.end(), 0u);
    const Circle circle{9, "the test", rank, members};
    const std::string host = host_key(config);
    Links links({.rank = rank,
                 .ranks = ranks,
                 .communicator = 9,
                 .token = {1, 2},
                 .host_key = host,
                 .config = &config,
                 .reactor = &crew.service,
                 .memory = &memory},
                control, circle, deadline);
    machines[rank].ranks = ranks;
    machines[rank].node.assign(ranks, 0);
    calibrate(machines[rank], links, {circle, &control, deadline, &config, {&host, 1}, true});
    control.exchange(circle, "ends", "done", deadline);  // nobody's links end before
  });
  return machines;
}

Config over(const char* transport) {
  Config config = loopback_config();
  config.transports = transport;
  return config;
}

uint64_t hash_of(const schedule::Machine& machine) {
  return policy::hash(policy::inputs_from(loopback_config(), machine));
}

class Calibration : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(Calibration, IsEqualOnAllRanksAndSane) {
  const Burners burners(std::get<1>(GetParam()));
  for (const uint32_t ranks : {2u, 5u}) {
    const auto machines = calibrated(ranks, over(std::get<0>(GetParam())));
    for (const schedule::Machine& machine : machines) {
      EXPECT_EQ(hash_of(machine), hash_of(machines[0]));
      ASSERT_EQ(machine.links.size(), size_t{ranks} * ranks);
      for (size_t i = 0; i < machine.links.size(); i++) {
        if (i % (ranks + 1) == 0) continue;  // to itself
        const schedule::Link& link = machine.links[i];
        EXPECT_TRUE(link.latency_us > 0 && link.latency_us < 1e6) << link.latency_us;
        EXPECT_TRUE(link.us_per_byte > 0 && link.us_per_byte < 1) << link.us_per_byte;
        EXPECT_TRUE(link.overhead_us >= 0 && link.overhead_us <= link.latency_us);
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

// Jobs with a cache folder of their own. A measurement that the machine has disturbed is not kept:
// then another job measures.
class KeptCalibration : public testing::Test {
 protected:
  KeptCalibration() { config_.cache_folder = folder_.path(); }
  std::filesystem::path file() const { return folder_.path() / "hcomm/calibration"; }
  std::vector<schedule::Machine> job(uint32_t ranks = 2) const {
    return calibrated(ranks, config_);
  }
  void keep(uint32_t ranks = 2) {
    const std::string before = test::file_text(file());
    for (int i = 0; i < 50 && test::file_text(file()) == before; i++) job(ranks);
    ASSERT_NE(test::file_text(file()), before);
  }
  // Every three numbers of the file become these.
  void rewrite(const std::string& numbers) const {
    std::istringstream old(test::file_text(file()));
    std::string line, lines;
    std::getline(old, line);
    while (std::getline(old, line))
      lines += line.substr(0, line.find(' ', line.find(' ') + 1)) + " " + numbers + "\n";
    folder_.write("hcomm/calibration",
                  fmt::format("hcomm-calibration 2 {:016x}\n{}", hash_bytes(lines), lines));
  }

  test::TemporaryFolder folder_;
  Config config_ = over("shm");
};

TEST_F(KeptCalibration, ServesEveryRankOfALaterJob) {
  keep();
  rewrite("0.5 0.25 0.125");
  for (const uint32_t ranks : {1u, 2u, 3u})
    for (const schedule::Machine& machine : job(ranks)) {
      EXPECT_EQ(machine.copy_us_per_byte, 0.5);
      EXPECT_EQ(machine.reduce_us_per_byte, 0.25);
      for (size_t i = 0; i < machine.links.size(); i++) {
        if (i % (ranks + 1) == 0) continue;
        EXPECT_EQ(machine.links[i].latency_us, 0.5);
        EXPECT_EQ(machine.links[i].us_per_byte, 0.25);
        EXPECT_EQ(machine.links[i].overhead_us, 0.125);
      }
    }
}

TEST_F(KeptCalibration, IsOfOneTransportAndOneSetting) {
  keep();
  rewrite("0.5 0.25 0.125");
  config_.transports = "tcp";
  EXPECT_NE(job()[0].links[1].latency_us, 0.5);
  config_ = over("shm");
  config_.cache_folder = folder_.path();
  config_.ring_bytes = 1 << 20;
  EXPECT_NE(job()[0].links[1].latency_us, 0.5);
}

TEST_F(KeptCalibration, WhatCannotBeMeasuredIsMeasuredAnew) {
  keep();
  for (const char* numbers :
       {"nan nan nan", "0.5 0 0", "-0.5 0.25 0", "inf 0.25 0", "0.5 1e300 0", "0.5 0.25 -1"}) {
    rewrite(numbers);
    const schedule::Machine machine = job()[0];
    EXPECT_TRUE(plausible(machine.links[1])) << numbers;
    EXPECT_TRUE(plausible(Work{machine.copy_us_per_byte, machine.reduce_us_per_byte})) << numbers;
  }
}

TEST_F(KeptCalibration, OnlyWhereItIsWanted) {
  keep();
  rewrite("0.5 0.25 0.125");
  const std::string before = test::file_text(file());
  config_.calibration_cached = false;
  EXPECT_NE(job()[0].links[1].latency_us, 0.5);
  EXPECT_EQ(test::file_text(file()), before);
}

TEST_F(KeptCalibration, WithoutAFolderEveryJobMeasures) {
  config_.cache_folder = "/proc/nothing";
  EXPECT_TRUE(plausible(job()[0].links[1]));
}

TEST(Plausible, IsWhatExists) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(plausible(schedule::Link{0.05, 1e-5}));
  EXPECT_TRUE(plausible(schedule::Link{2e5, 0.1}));
  for (const double bad : {kNan, kInf, -kInf, -1.0, 0.0, 1e9, 1e-12}) {
    EXPECT_FALSE(plausible(schedule::Link{bad, 1e-4})) << bad;
    EXPECT_FALSE(plausible(schedule::Link{1, bad})) << bad;
    EXPECT_FALSE(plausible(Work{bad, 1e-4})) << bad;
    EXPECT_FALSE(plausible(Work{1e-4, bad})) << bad;
  }
}

}  // namespace
}  // namespace hcomm::comm
