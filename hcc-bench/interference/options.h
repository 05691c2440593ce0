// SPDX-License-Identifier: Apache-2.0
// The command line of `hcc-bench interference`: one table, as hcc-bench's own
// (hcc-bench/options.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "hcc-bench/operation.h"

namespace hcomm::bench::interference {

struct Options {
  cli::Common common;
  Operation operation = Operation::all_reduce;
  std::vector<size_t> sizes = {size_t{64} << 10};
  size_t load = size_t{16} << 20;    // bytes of the all-reduce that is always under way
  int64_t every_ns = 1'000'000;      // from the end of an operation to the next one
  int64_t samples = 300;             // of each kind
  int64_t hang_ns = 30'000'000'000;  // 0: no watchdog
  std::string format;                // table, json, csv, md
  std::string output;                // file
};

void describe(CLI::App& app, Options& options);

}  // namespace hcomm::bench::interference
