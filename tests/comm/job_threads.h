// SPDX-License-Identifier: Apache-2.0
// A job in one process for tests: a hub and ranks as threads, each with its Control.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/control/control.h"
#include "comm/control/hub.h"

namespace hcomm::comm {

inline Config loopback_config() {
  Config config;
  config.interfaces = "lo";
  config.family = "ipv4";
  return config;
}

inline Join join_of(const Root& root, uint32_t rank, uint32_t ranks, int64_t ms = 20'000) {
  return {.root = root,
          .rank = rank,
          .ranks = ranks,
          .deadline = Deadline::after_ms(ms),
          .library_version = 100};
}

// Runs fn(rank) in a thread a rank.
inline void in_threads(uint32_t ranks, const std::function<void(uint32_t)>& fn) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; rank++) threads.emplace_back(fn, rank);
  for (std::thread& thread : threads) thread.join();
}

// The error that fn throws; code ok when it throws none.
inline Error error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::ok, "no error");
}

// An exchange among the first `size` ranks of the job.
inline std::vector<std::string> exchange(Control& control, uint64_t id, uint32_t index,
                                         uint32_t size, std::string_view mine, Deadline deadline) {
  std::vector<uint32_t> members(size);
  std::iota(members.begin(), members.end(), 0);
  return control.exchange({id, "some", index, members}, "parts", mine, deadline);
}

template <typename Condition>
bool eventually(Condition condition, int64_t ms = 10'000) {
  const Deadline deadline = Deadline::after_ms(ms);
  while (!condition() && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a poll, bounded by the deadline
  return condition();
}

// All ranks joined, in order of rank.
class Crew {
 public:
  explicit Crew(uint32_t ranks, const Config& config = loopback_config())
      : hub(Hub::listen(service, config)), controls(ranks) {
    in_threads(ranks, [&](uint32_t rank) {
      try {
        controls[rank] = Control::join(service, join_of(hub->root(), rank, ranks));
      } catch (const Error& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.text();
      }
    });
  }
  ~Crew() { controls.clear(); }

  Service service;
  std::unique_ptr<Hub> hub;
  std::vector<std::unique_ptr<Control>> controls;
};

}  // namespace hcomm::comm
