// SPDX-License-Identifier: Apache-2.0
// A sweep over algorithms as a table (plain or Markdown), JSON, NDJSON or CSV, each cell written
// when it is done. CSV has a line for each plan of a cell; JSON also has every turn.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hcc-bench/choice/result.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::choice {

struct Ending {
  Tally tally;
  std::string reason;  // why the run is not complete, or ""
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual void begin(const bench::Facts& facts) = 0;
  virtual void cell(const Cell& cell) = 0;
  virtual void end(const Ending& ending) = 0;
};

// format: table, json, ndjson, csv, md. The sink must outlive it.
std::unique_ptr<Writer> make_writer(std::string_view format, bench::Sink& sink,
                                    const bench::Style& style);

}  // namespace hcomm::choice
