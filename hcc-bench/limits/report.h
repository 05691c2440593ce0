// SPDX-License-Identifier: Apache-2.0
// The limits as a sheet; in JSON the schema hcc-bench-limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hcc-bench/limits/limit.h"
#include "hcc-bench/limits/options.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/report/sheet.h"

namespace hcomm::bench::limits {

inline constexpr std::string_view kSchema = "hcc-bench-limits";
inline constexpr int kSchemaVersion = 1;

struct Machine {
  Facts facts;
  std::vector<int> cores;
  size_t last_level_cache_bytes = 0;
  std::string kernels;
};

// `measured`: those of the sheet so far, kept by reference.
SheetPlan sheet_plan(const Options& options, const Machine& machine,
                     const std::vector<Limit>& measured);
Sheet::Entry entry_of(const Limit& limit, const Options& options);

cli::Json document_json(const Machine& machine, const std::vector<Limit>& limits);

}  // namespace hcomm::bench::limits
