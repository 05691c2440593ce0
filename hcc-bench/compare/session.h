// SPDX-License-Identifier: Apache-2.0
// One library with all of its ranks up, serving measurements (see peers/harness.h): started, asked,
// and ended by this object. Between two questions its ranks sleep. The socket has an abstract name
// and the ranks' region none, so there is nothing in any file system to be left behind; when this
// process is gone the socket is closed, and the ranks leave.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "hcc-bench/compare/child.h"
#include "hcc-bench/compare/result.h"

namespace hcomm::compare {

struct Job {
  int ranks = 2;
  std::vector<int> cpus;         // rank i runs on the i-th, and so on in turn
  std::string memory = "plain";  // or hcomm
  double start_s = 60;           // how long the library may take to come up
};

struct Question {
  std::string_view operation;
  size_t bytes = 0;
  double budget_s = 0.1, limit_s = 30;
};

class Session {
 public:
  // Failures throw: peer_failed (it ended), timeout, aborted (`stop` is not zero any more). All
  // have the last lines that the library printed.
  Session(Launch launch, const Job& job, const std::atomic<int>& stop);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();
  const std::string& version() const { return version_; }
  std::optional<Measurement> measure(const Question& question);  // nothing: not supported

 private:
  std::string read_line(double limit_s);
  void accept_driver(double limit_s);
  void await(int fd, int64_t end_ns);
  [[noreturn]] void ended();

  const std::atomic<int>& stop_;
  UniqueFd region_, listener_;
  std::optional<Child> child_;
  UniqueFd socket_;
  std::string version_, received_;
};

// What this process may run on.
std::vector<int> usable_cpus();

// "ok 1 2 3 ..." or "unsupported"; throws peer_failed where it is neither.
std::optional<Measurement> parse_answer(const std::string& line);

}  // namespace hcomm::compare
