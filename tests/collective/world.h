// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process (or, for settings that a process has once, of a process a host),
// each with its communicator, over the public API. What a rank finds wrong it says; the main thread
// fails the test with all of it.
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
#include "process/processes.h"

namespace hcomm::test {

struct Settings {
  std::string transports;  // "mixed": two processes, each a host to the library; see run_hosts
  std::string rules;       // the text of a policy file, "": none
  bool deterministic = false;
  int timeout_ms = 60'000;
  // NAME=VALUE of the library's environment; then the ranks are threads of one forked process.
  std::vector<std::string> environment = {};
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

using RankBody = std::function<void(const Rank&)>;

// Threads of this process for the ranks first, first + step, ... of a communicator.
inline void run_ranks(int first, int step, int ranks, const hcommUniqueId& id,
                      const hcommConfig_t& config, Findings& findings, const RankBody& body) {
  std::vector<std::thread> threads;
  for (int rank = first; rank < ranks; rank += step)
    threads.emplace_back([&, rank] {
      Rank self{nullptr, rank, ranks, &findings};
      if (!self.ok(hcommCommInitRankConfig(&self.comm, ranks, id, rank, &config), "init")) return;
      body(self);
      const hcommResult_t ended = hcommCommDestroy(self.comm);  // the handle is gone
      if (ended != hcommSuccess)
        findings.add("rank " + std::to_string(rank) + ": destroy: " + hcommGetErrorString(ended));
    });
  for (std::thread& thread : threads) thread.join();
}

// Ranks as threads of forked processes: one, or two that the library takes for two hosts, even
// ranks on the first. What the body leaves in variables stays there; findings come back. Call it
// before this process uses the library.
inline std::string run_hosts(int ranks, const Settings& settings, const hcommConfig_t& config,
                             const RankBody& body) {
  constexpr size_t kText = 4000;
  const int hosts = settings.transports == "mixed" && ranks > 1 ? 2 : 1;
  void* const texts = mmap(nullptr, 2 * kText, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0);
  Job job;
  job.start(hosts, [&](const Process& self) {
    setenv("HCOMM_HOST_ID", self.rank() == 0 ? "even" : "odd", 1);
    for (const std::string& entry : settings.environment)
      setenv(entry.substr(0, entry.find('=')).c_str(), entry.substr(entry.find('=') + 1).c_str(),
             1);
    Findings findings;
    run_ranks(self.rank(), hosts, ranks, self.id(), config, findings, body);
    std::snprintf(static_cast<char*>(texts) + static_cast<size_t>(self.rank()) * kText, kText,
                  "%s", findings.text().c_str());
    std::exit(0);  // the root's hub waits for the other host
  });
  std::string wrong;
  for (const int code : job.wait())
    if (code != 0) wrong += "a host ended with " + std::to_string(code) + "\n";
  for (size_t host = 0; host < 2; host++) wrong += static_cast<const char*>(texts) + host * kText;
  munmap(texts, 2 * kText);
  return wrong;
}

// Runs body on every rank of a fresh communicator; the findings, "" when all went well.
inline std::string run_world(int ranks, const Settings& settings, const RankBody& body) {
  std::string path;
  if (!settings.rules.empty()) {
    char name[] = "/tmp/hcomm-test-XXXXXX";
    const int fd = mkstemp(name);
    close(fd);
    path = name;
    std::ofstream(path) << settings.rules;
  }
  const bool mixed = settings.transports == "mixed";
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.transports = mixed ? "" : settings.transports.c_str();
  config.deterministic = settings.deterministic ? 1 : 0;
  config.timeout_ms = settings.timeout_ms;
  if (!path.empty()) config.policy = path.c_str();
  std::string wrong;
  hcommUniqueId id;
  if (mixed || !settings.environment.empty()) {
    wrong = run_hosts(ranks, settings, config, body);
  } else if (hcommGetUniqueId(&id) != hcommSuccess) {
    wrong = hcommGetLastError(nullptr);
  } else {
    Findings findings;
    run_ranks(0, 1, ranks, id, config, findings, body);
    wrong = findings.text();
  }
  if (!path.empty()) unlink(path.c_str());
  return wrong;
}

// A test for each way that joins ranks; its name ends in shm, tcp or mixed.
class Everywhere : public testing::TestWithParam<const char*> {
 protected:
  const char* transport() const { return GetParam(); }
};
#define HCOMM_EVERYWHERE(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(Over, suite, testing::Values("shm", "tcp", "mixed"),   \
                           [](const auto& place) { return std::string(place.param); })

}  // namespace hcomm::test
