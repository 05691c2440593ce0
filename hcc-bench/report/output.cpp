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
  if (!options.save.empty()) save_.emplace(options.save);
  if (!options.peak.empty()) facts_.peaks = peaks_.emplace(options.peak).text();
  Style style;
  style.quiet = options.common.quiet;
  style.timestamps = options.timestamps;
  style.per_iter = options.per_iter;
  style.peaks = peaks_.has_value();
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

void Output::row(const Row& measured) {
  Row row = measured;
  if (peaks_) row.peak = peaks_->busbw(row, facts_);
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  rows_.push_back(row);
  wrong_ += row.wrong;
  for (const auto& writer : writers_) writer->row(row);
}

void Output::series_end(const std::vector<Row>& rows) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  for (const auto& writer : writers_) writer->series_end(rows);
}

void Output::end(const std::string& reason) {
  const std::unique_lock lock(mutex_, std::chrono::seconds(1));
  if (!lock || ended_) return;
  ended_ = true;
  complete_ = reason.empty();
  for (const auto& writer : writers_) writer->end({wrong_, complete_, reason});
}

void Output::give_up(const std::string& reason) noexcept {
  try {
    end(reason);
  } catch (const std::exception& error) {
    cli::complain(std::string("hcc-bench: ") + error.what());
  }
}

Gate Output::settle_base() {
  if (save_ && complete_ && wrong_ == 0)
    save_->save(facts_, rows_);
  else if (save_)
    cli::complain(fmt::format("hcc-bench: {} is left as it was: the run is not {}", options_.save,
                              complete_ ? "right" : "complete"));
  return base_ ? compare() : Gate::holds;
}

Gate Output::compare() const {
  const double limit = options_.fail_if_slower.value_or(kDefaultLimit);
  std::vector<Change> changes;
  size_t slower = 0, compared = 0;
  for (const Row& row : rows_) {
    if (!base_->has(row)) continue;
    compared++;
    if (const auto change = base_->compare(row, limit)) {
      slower += change->ratio > 1 ? 1 : 0;
      changes.push_back(*change);
    }
  }
  // Results, but not rows of the document on standard output: that must stay what it is.
  std::string text = changes_text(changes);
  text += fmt::format("hcc-bench: {} of {} rows slower than {} by more than {:g} %, {} faster",
                      slower, compared, options_.compare, limit * 100, changes.size() - slower);
  if (compared < rows_.size()) text += fmt::format(", {} not in it", rows_.size() - compared);
  if (compared < base_->size()) text += fmt::format(", {} of it not run", base_->size() - compared);
  cli::complain_lines(text);
  if (!options_.fail_if_slower) return Gate::holds;
  if (compared == 0) {
    cli::complain(
        "hcc-bench: nothing was compared, so --fail-if-slower is undecided: the base has other "
        "operations, sizes, types, places or numbers of ranks");
    return Gate::undecided;
  }
  return slower > 0 ? Gate::slower : Gate::holds;
}

}  // namespace hcomm::bench
