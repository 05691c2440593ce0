// SPDX-License-Identifier: Apache-2.0
// The command line of `hcc-bench limits`: one table, as hcc-bench's own (hcc-bench/options.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace hcomm::bench::limits {

inline constexpr std::string_view kSections[] = {"memory", "cores", "exchange", "allreduce", "tcp"};

struct Options {
  cli::Common common;
  std::vector<std::string_view> sections{std::begin(kSections), std::end(kSections)};
  double min_time_s = 0.05;
  std::string format;  // table, json, csv, md
  std::string output;  // file
};

void describe(CLI::App& app, Options& options);

}  // namespace hcomm::bench::limits
