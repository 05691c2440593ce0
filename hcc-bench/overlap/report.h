// SPDX-License-Identifier: Apache-2.0
// The rows of `hcc-bench overlap` as a sheet; in JSON the schema hcc-bench-overlap.
#pragma once

#include <string_view>

#include "hcc-bench/overlap/options.h"
#include "hcc-bench/overlap/row.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/report/sheet.h"

namespace hcomm::bench::overlap {

inline constexpr std::string_view kSchema = "hcc-bench-overlap";
inline constexpr int kSchemaVersion = 1;

SheetPlan sheet_plan(const Options& options, const Facts& facts);
Sheet::Entry entry_of(const Row& row);

}  // namespace hcomm::bench::overlap
