// SPDX-License-Identifier: Apache-2.0
// The command line of hcc-bench: one table (describe), used by its parser, --help, the completions
// and the tests that compare the man page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "datatype/types.h"
#include "hcc-bench/compare/options.h"
#include "hcc-bench/interference/options.h"
#include "hcc-bench/limits/options.h"
#include "hcc-bench/measure/sampler.h"
#include "hcc-bench/operation.h"
#include "hcc-bench/overlap/options.h"

namespace hcomm::bench {

inline constexpr int kRootAll = -1, kRootRotate = -2;

struct Delay {  // of one rank, before each operation
  int rank = -1;
  int64_t time_ns = 0;
};

struct Options {
  cli::Common common;
  // what
  std::vector<Operation> operations;
  std::vector<size_t> sizes;
  std::vector<Type> types = {Type::float32};
  std::vector<Op> redops = {Op::sum};
  bool all_redops = false;  // those that the type allows
  int root = kRootRotate;
  std::string in_place = "out";  // out, in, both
  std::string memory = "plain";  // plain, hcomm
  std::string check = "first";   // first, all, off
  // how
  Rules rules;
  int64_t hang_ns = 30'000'000'000;  // 0: no watchdog
  int expect_size = 0;
  bool fit = false, self_test = false;
  Delay delay;
  std::string sweep;  // algo, plan; "": rows of the choice alone
  int rounds = 9;     // turns of each algorithm
  // output
  std::string format;  // table, json, ndjson, csv, md
  std::string output;  // file
  bool per_iter = false, timestamps = false;
  std::string save, compare, peak;
  std::optional<double> fail_if_slower;
  std::string explain;
  // of the commands that stand in an operation's place
  compare::Options contest;
  limits::Options limits;
  interference::Options interference;
  overlap::Options overlap;
};

void describe(CLI::App& app, Options& options);
// What no single option can say. Throws invalid_argument.
void validate(Options& options);

}  // namespace hcomm::bench
