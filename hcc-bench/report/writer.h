// SPDX-License-Identifier: Apache-2.0
// Writers: the rows of a run as a table, CSV, Markdown, JSON or NDJSON, each row written and
// flushed when it is done, so that what was measured is there when a run is cut short. Only rank 0
// has writers. JSON is closed by `end`, which also runs after SIGINT; NDJSON and CSV are valid at
// any moment.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json.h"
#include "cli/terminal.h"
#include "hcc-bench/report/row.h"

namespace hcomm::bench {

// A file or standard output. Throws system when it cannot be written.
class Sink {
 public:
  explicit Sink(const std::string& path);  // "": standard output
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink();
  void write(std::string_view text);

 private:
  std::string name_;
  int fd_;
};

struct Style {
  cli::Painter painter;
  bool quiet = false, timestamps = false, per_iter = false;
  bool peaks = false;  // a column of them
};

struct Ending {
  uint64_t wrong = 0;    // elements
  bool complete = true;  // not interrupted, not failed
  std::string reason;    // why it is not complete
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual void begin(const Facts& facts) = 0;
  virtual void row(const Row& row) = 0;
  // The rows of the last series are all there.
  virtual void series_end(const std::vector<Row>&) {}
  virtual void end(const Ending& ending) = 0;
};

// format: table, json, ndjson, csv, md.
std::unique_ptr<Writer> make_writer(std::string_view format, Sink& sink, const Style& style);

// A row as all machine formats have it: numbers with their unit in the key.
cli::Json row_json(const Row& row, const Style& style);
cli::Json facts_json(const Facts& facts);
cli::Json machine_json(const Facts& facts);  // of them what is so without a communicator
// A value as CSV has it: null is empty, a list is joined by semicolons.
std::string csv_cell(const cli::Json& value);

}  // namespace hcomm::bench
