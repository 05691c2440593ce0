// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

namespace hcomm::bench {

namespace {

constexpr double kDefaultLimit = 0.05;

}  // namespace

Output::Output(const Options& options, Facts facts) : options_(options), facts_(std::move(facts)) {
  if (!options.compare.empty()) base_.emplace(options.compare);
  Style style;
  style.quiet = options.common.quiet;
  style.timestamps = options.timestamps;
  style.per_iter = options.per_iter;
  if (!options.output.empty()) {
    sinks_.push_back(std::make_unique<Sink>(options.output));
    writers_.push_back(make_writer(options.format, *sinks_.back(), style));
  }
  const bool to_terminal = options.output.empty() || !options.common.quiet;
  if (to_terminal) {
    sinks_.push_back(std::make_unique<Sink>(""));
    style.painter = cli::Painter(STDOUT_FILENO, options.common.color);
    const std::string& format = options.output.empty() ? options.format : "table";
    writers_.push_back(make_writer(format, *sinks_.back(), style));
  }
  for (const auto& writer : writers_) writer->begin(facts_);
}

void Output::row(const Row& row) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  for (const auto& writer : writers_) writer->row(row);
  rows_.push_back(row);
}

void Output::series_end(const std::vector<Row>& rows) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  for (const auto& writer : writers_) writer->series_end(rows);
}

void Output::end(const Ending& ending) {
  const std::unique_lock lock(mutex_, std::chrono::seconds(1));
  if (!lock || ended_) return;
  ended_ = true;
  for (const auto& writer : writers_) writer->end(ending);
}

bool Output::settle_base() {
  if (!options_.save.empty()) save_rows(options_.save, facts_, rows_);
  if (!base_) return true;
  const double limit = options_.fail_if_slower.value_or(kDefaultLimit);
  std::vector<Change> changes;
  size_t slower = 0, missing = 0;
  for (const Row& row : rows_) {
    missing += base_->has(row) ? 0 : 1;
    if (const auto change = base_->compare(row, limit)) {
      slower += change->ratio > 1 ? 1 : 0;
      changes.push_back(*change);
    }
  }
  // Results, but not rows of the document on standard output: that must stay what it is.
  fmt::print(stderr, "{}", changes_text(changes));
  fmt::print(stderr, "hcc-bench: {} of {} rows slower than {} by more than {:g} %, {} faster",
             slower, rows_.size(), options_.compare, limit * 100, changes.size() - slower);
  fmt::print(stderr, "{}\n", missing > 0 ? fmt::format(", {} not in it", missing) : "");
  return slower == 0 || !options_.fail_if_slower;
}

}  // namespace hcomm::bench
