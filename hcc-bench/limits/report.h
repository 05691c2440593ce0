// SPDX-License-Identifier: Apache-2.0
// The limits as a table, CSV, Markdown or JSON. Lines are written as they come; JSON at the end, in
// one piece.
#pragma once

#include <memory>
#include <vector>

#include "cli/json.h"
#include "hcc-bench/limits/limit.h"
#include "hcc-bench/limits/options.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench::limits {

inline constexpr std::string_view kSchema = "hcc-bench-limits";
inline constexpr int kSchemaVersion = 1;

struct Machine {
  Facts facts;
  std::vector<int> cores;
  size_t last_level_cache_bytes = 0;
  std::string kernels;
};

// What a command line asks for: to a file or standard output, or both.
class Report {
 public:
  Report(const Options& options, Machine machine);
  ~Report();
  void add(const Limit& limit);
  void end();

 private:
  struct Paper;
  Machine machine_;
  std::vector<Limit> limits_;
  std::vector<std::unique_ptr<Paper>> papers_;
};

cli::Json limit_json(const Limit& limit);
cli::Json document_json(const Machine& machine, const std::vector<Limit>& limits);

}  // namespace hcomm::bench::limits
