// SPDX-License-Identifier: Apache-2.0
// The table for people, plain or Markdown: a title a series, a line a size, a line of summary.
#pragma once

#include "hcc-bench/report/writer.h"

namespace hcomm::bench {

enum class Look : uint8_t { plain, markdown };
std::unique_ptr<Writer> make_table_writer(Sink& sink, const Style& style, Look look);

}  // namespace hcomm::bench
