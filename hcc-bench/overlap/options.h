// SPDX-License-Identifier: Apache-2.0
// The command line of `hcc-bench overlap`: one table, as hcc-bench's own (hcc-bench/options.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "hcc-bench/operation.h"

namespace hcomm::bench::overlap {

struct Options {
  cli::Common common;
  std::vector<Operation> operations = {Operation::all_reduce};
  std::vector<size_t> sizes = {size_t{16} << 20};
  std::string progress = "stream";  // stream, plan
  int64_t every_ns = 100'000;       // between two calls of hcommProgress, with plan
  int64_t rounds = 11;
  int64_t hang_ns = 30'000'000'000;  // 0: no watchdog
  std::string format;                // table, json, csv, md
  std::string output;                // file
};

void describe(CLI::App& app, Options& options);

}  // namespace hcomm::bench::overlap
