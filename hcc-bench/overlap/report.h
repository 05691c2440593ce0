// SPDX-License-Identifier: Apache-2.0
// The rows of `hcc-bench overlap` as a table, Markdown, CSV or JSON (schema hcc-bench-overlap).
// Rank 0's. Lines are written as they come, JSON at the end, which comes in every case.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "cli/json.h"
#include "hcc-bench/overlap/options.h"
#include "hcc-bench/overlap/row.h"
#include "hcc-bench/report/row.h"

namespace hcomm::bench::overlap {

inline constexpr std::string_view kSchema = "hcc-bench-overlap";
inline constexpr int kSchemaVersion = 1;

class Report {
 public:
  Report(const Options& options, Facts facts);
  ~Report();
  void add(const Row& row);
  // Once; later calls do nothing. `reason`: why the run is not complete, or "". From any thread,
  // also while another one is stuck in a write: then nothing is ended.
  void end(const std::string& reason);
  // The same where something has failed already: what fails here is told, no more.
  void give_up(const std::string& reason) noexcept;

 private:
  struct Paper;
  Facts facts_;
  std::vector<Row> rows_;
  std::vector<std::unique_ptr<Paper>> papers_;
  std::timed_mutex mutex_;
  bool ended_ = false;
};

cli::Json row_json(const Row& row);

}  // namespace hcomm::bench::overlap
