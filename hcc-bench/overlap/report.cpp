// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/report.h"

#include <fmt/format.h>

#include <chrono>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/text.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench::overlap {

namespace {

using cli::Align;
using cli::Json;
using cli::number_text;

std::string format_of(const Options& options) {
  if (!options.format.empty()) return options.format;
  for (const std::string suffix : {"json", "csv", "md"})
    if (options.output.ends_with("." + suffix)) return suffix;
  return "table";
}

std::vector<cli::Column> table_columns() {
  return {{"# operation", Align::left, 14},
          {"size", Align::right, 8},
          {"n", Align::right, 5},
          {"comm us", Align::right, 9},
          {"compute us", Align::right, 10},
          {"both us", Align::right, 9},
          {"overlap%", Align::right, 8},
          {"95 %", Align::right, 15},
          {"least%", Align::right, 7},
          {"check", Align::left, 6},
          {"algorithm"}};
}

std::string percent_text(double share) {
  return fmt::format("{:.1f}", share * 100);
}

std::vector<std::string> table_cells(const Row& row) {
  return {row.operation,
          size_text(row.bytes),
          std::to_string(row.rounds),
          number_text(row.median.comm * 1e6),
          number_text(row.median.compute * 1e6),
          number_text(row.median.both * 1e6),
          percent_text(row.overlap),
          percent_text(row.interval.low) + " .. " + percent_text(row.interval.high),
          percent_text(row.least),
          row.wrong == 0 ? "ok" : fmt::format("WRONG:{}", row.wrong),
          cli::printable(row.algorithm)};
}

}  // namespace

// One place to write to, in one format.
struct Report::Paper {
  Paper(const std::string& path, std::string as, const Options& options)
      : sink(path), format(std::move(as)), columns(table_columns()) {
    if (options.common.quiet) return;
    how = options.progress == "stream"
              ? "the worker of a stream moves the operation"
              : fmt::format("the caller moves it: hcommProgress every {:g} us",
                            static_cast<double>(options.every_ns) / 1e3);
  }

  bool lines() const { return format != "json"; }

  void begin(const Facts& facts) {
    if (format == "csv") {
      std::vector<std::string> titles;
      const Json empty = row_json(Row{});
      for (const auto& [key, value] : empty.items()) titles.push_back(key);
      return sink.write(cli::csv_line(titles));
    }
    if (!how.empty()) sink.write(head(facts));
    if (format == "table") return sink.write(cli::title_line(columns));
    std::vector<std::string> titles, rules;
    for (const cli::Column& column : columns) {
      titles.push_back(column.title.substr(column.title.starts_with("# ") ? 2 : 0));
      rules.emplace_back(column.align == Align::right ? "---:" : "---");
    }
    sink.write("\n" + cli::markdown_line(titles) + cli::markdown_line(rules));
  }

  void add(const Row& row) {
    if (format == "table") return sink.write(cli::table_line(columns, table_cells(row)));
    if (format == "md") return sink.write(cli::markdown_line(table_cells(row)));
    std::vector<std::string> cells;
    const Json json = row_json(row);
    for (const auto& [key, value] : json.items()) cells.push_back(csv_cell(value));
    sink.write(cli::csv_line(cells));
  }

  std::string head(const Facts& facts) const {
    return fmt::format(
        "{0}{1}, {2}; {3} rank{4} on {5} host{6} ({7}), {8} cores here\n"
        "{0}{9}; medians, of the slowest rank\n"
        "{0}overlap = 1 - (both - compute) / comm; 95 %: its interval over the rounds\n",
        format == "md" ? "" : "# ", facts.tool, facts.library, facts.ranks,
        facts.ranks == 1 ? "" : "s", facts.hosts, facts.hosts == 1 ? "" : "s",
        cli::printable(facts.hosts_text), facts.cores, how);
  }

  Sink sink;
  std::string format, how;
  std::vector<cli::Column> columns;
};

Report::Report(const Options& options, Facts facts) : facts_(std::move(facts)) {
  const std::string format = format_of(options);
  if (!options.output.empty())
    papers_.push_back(std::make_unique<Paper>(options.output, format, options));
  if (options.output.empty() || !options.common.quiet)
    papers_.push_back(
        std::make_unique<Paper>("", options.output.empty() ? format : "table", options));
  for (const auto& paper : papers_)
    if (paper->lines()) paper->begin(facts_);
}

Report::~Report() = default;

void Report::add(const Row& row) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  rows_.push_back(row);
  for (const auto& paper : papers_)
    if (paper->lines()) paper->add(row);
}

void Report::end(const std::string& reason) {
  const std::unique_lock lock(mutex_, std::chrono::seconds(1));
  if (!lock || ended_) return;
  ended_ = true;
  Json json = cli::document(kSchema, kSchemaVersion);
  json["system"] = facts_json(facts_);
  json["rows"] = Json::array();
  for (const Row& row : rows_) json["rows"].push_back(row_json(row));
  json["end"] = {{"complete", reason.empty()}};
  if (!reason.empty()) json["end"]["reason"] = reason;
  for (const auto& paper : papers_) {
    if (!paper->lines()) paper->sink.write(cli::json_pretty(json));
    if (paper->format == "table" && !reason.empty())
      paper->sink.write(fmt::format("# not complete: {}\n", reason));
  }
}

void Report::give_up(const std::string& reason) noexcept {
  try {
    end(reason);
  } catch (const std::exception& error) {
    cli::complain(std::string("hcc-bench: ") + error.what());
  }
}

Json row_json(const Row& row) {
  return {{"operation", row.operation},
          {"ranks", row.ranks},
          {"bytes", row.bytes},
          {"progress", row.progress},
          {"pieces", row.pieces},
          {"rounds", row.rounds},
          {"comm_us", row.median.comm * 1e6},
          {"compute_us", row.median.compute * 1e6},
          {"both_us", row.median.both * 1e6},
          {"overlap", row.overlap},
          {"overlap_low", row.interval.low},
          {"overlap_high", row.interval.high},
          {"overlap_least", row.least},
          {"wrong_elements", row.wrong},
          {"algorithm", row.algorithm}};
}

}  // namespace hcomm::bench::overlap
