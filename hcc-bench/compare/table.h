// SPDX-License-Identifier: Apache-2.0
// The comparison for people: a row for each cell and state, and below them the means.
#pragma once

#include <memory>

#include "hcc-bench/compare/writer.h"
#include "hcc-bench/report/table_writer.h"

namespace hcomm::compare {

std::unique_ptr<Writer> make_table(bench::Sink& sink, const bench::Style& style, bench::Look look);

}  // namespace hcomm::compare
