// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/sheet.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/terminal.h"
#include "cli/text.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench {

namespace {

using cli::Align;
using cli::Json;

std::string format_of(const SheetPlan& plan) {
  if (!plan.format.empty()) return plan.format;
  for (const std::string suffix : {"json", "csv", "md"})
    if (plan.output.ends_with("." + suffix)) return suffix;
  return "table";
}

std::string csv_titles(const Json& row) {
  std::vector<std::string> titles;
  for (const auto& [key, value] : row.items()) titles.push_back(key);
  return cli::csv_line(titles);
}

std::string csv_cells(const Json& row) {
  std::vector<std::string> cells;
  for (const auto& [key, value] : row.items()) cells.push_back(csv_cell(value));
  return cli::csv_line(cells);
}

std::string markdown_titles(const std::vector<cli::Column>& columns) {
  std::vector<std::string> titles, rules;
  for (const cli::Column& column : columns) {
    titles.push_back(column.title.substr(column.title.starts_with("# ") ? 2 : 0));
    rules.emplace_back(column.align == Align::right ? "---:" : "---");
  }
  return "\n" + cli::markdown_line(titles) + cli::markdown_line(rules);
}

}  // namespace

// One place to write to, in one format.
struct Sheet::Paper {
  Paper(const std::string& path, std::string as) : sink(path), format(std::move(as)) {}

  void begin(const SheetPlan& plan) {
    if (format == "json") return;
    if (format == "csv") return sink.write(csv_titles(plan.titles));
    if (!plan.quiet)
      for (const std::string& line : plan.head)
        sink.write((format == "md" ? "" : "# ") + line + "\n");
    sink.write(format == "md" ? markdown_titles(plan.columns) : cli::title_line(plan.columns));
  }

  void add(const SheetPlan& plan, const Entry& entry) {
    if (format == "json") return;
    if (format == "csv") return sink.write(csv_cells(entry.json));
    if (format == "md") return sink.write(cli::markdown_line(entry.cells));
    if (entry.section.empty()) return sink.write(cli::table_line(plan.columns, entry.cells));
    if (entry.section != section) sink.write(fmt::format("# {}\n", entry.section));
    section = entry.section;
    std::vector<std::string> cells = entry.cells;
    cells.front() = "  " + cells.front();
    sink.write(cli::table_line(plan.columns, cells));
  }

  Sink sink;
  std::string format, section;
};

Sheet::Sheet(SheetPlan plan) : plan_(std::move(plan)) {
  const std::string format = format_of(plan_);
  if (!plan_.output.empty()) papers_.push_back(std::make_unique<Paper>(plan_.output, format));
  if (plan_.output.empty() || !plan_.quiet)
    papers_.push_back(std::make_unique<Paper>("", plan_.output.empty() ? format : "table"));
  for (const auto& paper : papers_) paper->begin(plan_);
}

Sheet::~Sheet() = default;

void Sheet::add(const Entry& entry) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  rows_.push_back(entry.json);
  for (const auto& paper : papers_) paper->add(plan_, entry);
}

void Sheet::end(const std::string& reason) {
  const std::unique_lock lock(mutex_, std::chrono::seconds(1));
  if (!lock || ended_) return;
  ended_ = true;
  Json json = plan_.document(rows_);
  json["end"] = {{"complete", reason.empty()}};
  if (!reason.empty()) json["end"]["reason"] = reason;
  for (const auto& paper : papers_) {
    if (paper->format == "json") paper->sink.write(cli::json_pretty(json));
    if (paper->format == "table" && !reason.empty())
      paper->sink.write(fmt::format("# not complete: {}\n", reason));
  }
}

void Sheet::give_up(const std::string& reason) noexcept {
  try {
    end(reason);
  } catch (const std::exception& error) {
    cli::complain(std::string("hcc-bench: ") + error.what());
  }
}

}  // namespace hcomm::bench
