// SPDX-License-Identifier: Apache-2.0
// The comparison as a table (plain or Markdown), JSON or CSV, each cell written when it is done.
// CSV has a line for each library in each cell and state; JSON has every turn as well.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hcc-bench/compare/result.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::compare {

struct Ending {
  std::vector<Summary> summaries;
  std::string reason;  // why the run is not complete, or ""
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual void begin(const bench::Facts& facts) = 0;
  virtual void cell(const Cell& cell) = 0;
  virtual void end(const Ending& ending) = 0;
};

// format: table, json, csv, md. The sink must outlive it.
std::unique_ptr<Writer> make_writer(std::string_view format, bench::Sink& sink,
                                    const bench::Style& style);

}  // namespace hcomm::compare
