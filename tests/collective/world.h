// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, each with its communicator, over the public API. What a rank
// finds wrong it says; the main thread fails the test with all of it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "hcomm/hcomm.h"

namespace hcomm::test {

struct Settings {
  std::string transports;
  std::string rules;  // the text of a policy file, "": none
  bool deterministic = false;
  int timeout_ms = 60'000;
};

// The findings of all ranks; add from any thread.
class Findings {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    if (texts_.size() < 8) texts_.push_back(std::move(text));
  }
  bool empty() const { return texts_.empty(); }
  std::string text() const {
    std::string all;
    for (const std::string& each : texts_) all += each + "\n";
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

struct Rank {
  hcommComm_t comm;
  int rank, ranks;
  Findings* findings;

  // True when the call succeeded; otherwise it is a finding.
  bool ok(hcommResult_t result, const std::string& what) const {
    if (result == hcommSuccess) return true;
    findings->add("rank " + std::to_string(rank) + ": " + what + ": " +
                  hcommGetErrorString(result) + ": " + hcommGetLastError(comm) + " " +
                  hcommGetLastError(nullptr));
    return false;
  }
};

// Runs body on every rank of a fresh communicator; the findings, "" when all went well.
inline std::string run_world(int ranks, const Settings& settings,
                             const std::function<void(const Rank&)>& body) {
  Findings findings;
  std::string path;
  if (!settings.rules.empty()) {
    char name[] = "/tmp/hcomm-test-XXXXXX";
    const int fd = mkstemp(name);
    close(fd);
    path = name;
    std::ofstream(path) << settings.rules;
  }
  hcommUniqueId id;
  if (hcommGetUniqueId(&id) != hcommSuccess) return hcommGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; rank++)
    threads.emplace_back([&, rank] {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.transports = settings.transports.c_str();
      config.deterministic = settings.deterministic ? 1 : 0;
      config.timeout_ms = settings.timeout_ms;
      if (!path.empty()) config.policy = path.c_str();
      Rank self{nullptr, rank, ranks, &findings};
      if (!self.ok(hcommCommInitRankConfig(&self.comm, ranks, id, rank, &config), "init")) return;
      body(self);
      const hcommResult_t ended = hcommCommDestroy(self.comm);  // the handle is gone
      if (ended != hcommSuccess)
        findings.add("rank " + std::to_string(rank) + ": destroy: " + hcommGetErrorString(ended));
    });
  for (std::thread& thread : threads) thread.join();
  if (!path.empty()) unlink(path.c_str());
  return findings.text();
}

}  // namespace hcomm::test
