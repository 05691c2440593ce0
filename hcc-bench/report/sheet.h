// SPDX-License-Identifier: Apache-2.0
// Rows of one kind as a table, Markdown, CSV or JSON, in a file, on standard output, or both: for
// the commands whose rows are not those of an operation's sweep. Lines are written as they come,
// JSON at the end, which comes in every case. Rank 0's.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/table.h"

namespace hcomm::bench {

struct SheetPlan {
  std::string format;  // table, json, csv, md; "": what the suffix of `output` says, else table
  std::string output;  // a file, and the table to standard output; "": standard output alone
  bool quiet = false;  // no head; with a file nothing to standard output
  std::vector<std::string> head;  // lines above a table
  std::vector<cli::Column> columns;
  cli::Json titles;                              // a row; its keys are the titles of CSV
  std::function<cli::Json(cli::Json)> document;  // JSON around an array of rows
};

class Sheet {
 public:
  explicit Sheet(SheetPlan plan);
  ~Sheet();

  // Its cells, and what the machine formats have of it. section: a line before the first row of
  // each, "": none.
  struct Entry {
    std::vector<std::string> cells;
    cli::Json json;
    std::string section = "";
  };
  void add(const Entry& entry);
  // Once; later calls do nothing. `reason`: why the run is not complete, or "". From any thread,
  // also while another one is stuck in a write: then nothing is ended.
  void end(const std::string& reason);
  // The same where something has failed already: what fails here is told, no more.
  void give_up(const std::string& reason) noexcept;

 private:
  struct Paper;
  SheetPlan plan_;
  cli::Json rows_ = cli::Json::array();
  std::vector<std::unique_ptr<Paper>> papers_;
  std::timed_mutex mutex_;
  bool ended_ = false;
};

}  // namespace hcomm::bench
