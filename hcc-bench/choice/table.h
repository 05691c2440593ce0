// SPDX-License-Identifier: Apache-2.0
// A sweep over algorithms as a table for people: a title a series, a line a size, the verdict last.
#pragma once

#include "hcc-bench/choice/writer.h"
#include "hcc-bench/report/table_writer.h"

namespace hcomm::choice {

std::unique_ptr<Writer> make_table(bench::Sink& sink, const bench::Style& style, bench::Look look);

}  // namespace hcomm::choice
