// SPDX-License-Identifier: Apache-2.0
// The command line of `hcc-bench compare`: a table of its own, read as hcc-bench's is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/options.h"
#include "hcc-bench/operation.h"

namespace hcomm::compare {

struct Options {
  cli::Common common;
  // whom
  std::vector<std::string> peers = {"auto"};
  std::vector<std::string> prefixes;
  // what
  std::vector<bench::Operation> operations;
  std::vector<int> ranks = {2, 4, 8};
  std::vector<size_t> sizes;
  std::vector<std::string> transports = {"shm", "tcp"};
  std::string memory = "plain";
  // how
  int rounds = 5;
  double budget_s = 0.1;
  double hang_s = 30;
  // output
  std::string format, output, plot;
};

// The operations that every library has.
std::vector<bench::Operation> comparable_operations();

void describe(CLI::App& app, Options& options);
// What no single option can say, and the defaults. Throws invalid_argument.
void validate(Options& options);

}  // namespace hcomm::compare
