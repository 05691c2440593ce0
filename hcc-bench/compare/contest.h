// SPDX-License-Identifier: Apache-2.0
// The libraries that are up at one time, with one number of ranks over one transport: asked in
// turn, the order moving on by one each round. Whoever fails drops out, and the others go on.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hcc-bench/compare/catalogue.h"
#include "hcc-bench/compare/options.h"
#include "hcc-bench/compare/result.h"
#include "hcc-bench/compare/session.h"

namespace hcomm::compare {

struct Contender {
  Subject subject;
  std::string program;  // its driver, "" where there is nothing to build
};

class Contest {
 public:
  // Starts all that know the transport; HCOMM is the first. A signal ends it: aborted.
  Contest(std::span<const Contender> contenders, std::string transport, int ranks,
          const Options& options, const std::atomic<int>& stop);
  // All rounds of one cell. Stopped: what is there so far.
  Cell measure(bench::Operation operation, size_t bytes);
  bool stopped() const { return stop_.load() != 0; }

 private:
  struct Player {
    std::string name, version, fault;
    std::unique_ptr<Session> session;
  };
  void turn(Player& player, Series& series, const Question& question, int round);

  std::string transport_;
  int ranks_;
  const Options& options_;
  const std::atomic<int>& stop_;
  std::vector<Player> players_;
};

}  // namespace hcomm::compare
