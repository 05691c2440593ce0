// SPDX-License-Identifier: Apache-2.0
// Two runs of the microbenchmarks held against one another, repetition by repetition. A run is what
// Google Benchmark wrote as JSON, a document a program, kept together in one file. Used by
// microbench_compare, which etc/microbench.sh calls. Absent: running anything.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/json.h"

namespace hcomm::microbench {

// Of each case the times of its repetitions, in ns. Real time where several threads take part, else
// that of the processor, which a busy machine disturbs less.
using Times = std::map<std::string, std::vector<double>>;

// {"schema", "version", "runs": [documents]}. Throws Error(invalid_argument) where one is no
// document of Google Benchmark.
cli::Json bundle(std::span<const std::string> texts);
Times times_of(const cli::Json& bundle);  // throws Error(invalid_argument)
Times read_times(const std::string& path);

struct Change {
  std::string name;
  double base_ns, now_ns;  // medians
  double ratio;            // now / base
  double probability;      // that it is chance
};

struct Comparison {
  std::vector<Change> changes;  // beyond the bound, both ways
  size_t compared = 0, slower = 0, added = 0, gone = 0;
};

// A case has changed when its median and its least time both differ by more than `bound` and a rank
// test over the repetitions says that it is not chance.
Comparison compare(const Times& base, const Times& now, double bound);

std::string text_of(const Comparison& comparison, double bound);  // what has changed, and a summary

}  // namespace hcomm::microbench
