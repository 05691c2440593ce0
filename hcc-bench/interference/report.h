// SPDX-License-Identifier: Apache-2.0
// The rows of `hcc-bench interference`, and as a sheet; in JSON the schema hcc-bench-interference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "hcc-bench/interference/options.h"
#include "hcc-bench/measure/statistics.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/report/sheet.h"

namespace hcomm::bench::interference {

inline constexpr std::string_view kSchema = "hcc-bench-interference";
inline constexpr int kSchemaVersion = 1;

struct Row {
  std::string operation, priorities;  // ordered, equal
  int ranks = 1;
  size_t bytes = 0, load_bytes = 0;  // as nccl-tests counts
  Statistics alone, loaded;          // seconds of the operation, of the slowest rank
  double loads_per_s = 0;            // that ended meanwhile
  uint64_t wrong = 0;                // elements, over all ranks
};

SheetPlan sheet_plan(const Options& options, const Facts& facts);
Sheet::Entry entry_of(const Row& row);

}  // namespace hcomm::bench::interference
