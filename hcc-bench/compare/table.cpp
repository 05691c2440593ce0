// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/table.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/text.h"

namespace hcomm::compare {

namespace {

using cli::Align;
using cli::number_text;
using Cells = std::vector<std::string>;

const std::vector<cli::Column> kColumns = {
    {"collective", Align::right, 14},  {"ranks", Align::right, 5},
    {"size", Align::right, 7},         {"cores", Align::left, 5},
    {"hcomm min us", Align::right, 8}, {"peer min us", Align::right, 8},
    {"peer", Align::left, 8},          {"ratio", Align::right, 6},
    {"ratio p50", Align::right, 6},    {"95 %", Align::right, 11},
    {"verdict", Align::left}};

std::string ratio_text(double ratio) {
  return fmt::format("{:.2f}", ratio);
}

// Two or three rounds that differ much say next to nothing.
std::string interval_text(const Interval& sure) {
  return fmt::format("{:.2f}..{}", sure.low,
                     sure.high < 100 ? fmt::format("{:.2f}", sure.high) : ">99");
}

class TableWriter : public Writer {
 public:
  TableWriter(bench::Sink& sink, const bench::Style& style, bench::Look look)
      : sink_(sink), style_(style), look_(look) {}

  void begin(const bench::Facts& facts) override {
    if (style_.quiet) return;
    note(fmt::format("{}; {}, {} cores; buffers of hcomm: {}", facts.tool,
                     cli::printable(facts.processor), facts.cores, facts.memory));
    note("float32, sum; sizes as nccl-tests counts; time of the slowest rank; ratio: hcomm / peer");
  }

  void cell(const Cell& cell) override {
    if (cell.transport != transport_) title(cell);
    const std::vector<Row> rows = rows_of(cell);
    for (const Row& row : rows) line(cells_of(cell, row));
    if (rows.empty()) line(cells_of(cell, Row{}));
    for (const Series& series : cell.series) {
      std::string fault = series.error == kUnsupported ? "" : series.error;
      if (series.wrong()) fault = "wrong results";
      // A library that has dropped out is told once.
      if (std::exchange(told_[series.subject], fault) != fault && !fault.empty())
        note(fmt::format("  {}: {}", series.subject, cli::printable(fault)));
    }
  }

  void end(const Ending& ending) override {
    for (const Summary& each : ending.summaries) {
      if (each.rows == 0) continue;
      note(style_.painter.paint(
          cli::Color::bold,
          fmt::format("{}: geometric mean of the ratios {:.3f} ({} rows), lost {}; worst {}",
                      each.transport, each.mean, each.rows, each.lost,
                      cli::printable(each.worst))));
    }
    if (!ending.reason.empty()) note("not complete: " + ending.reason);
  }

 private:
  void note(const std::string& text) {
    sink_.write(look_ == bench::Look::plain ? fmt::format("# {}\n", text)
                                            : fmt::format("\n{}\n", text));
  }

  void title(const Cell& cell) {
    transport_ = cell.transport;
    if (look_ == bench::Look::plain) {
      sink_.write(fmt::format("#\n# {}\n", style_.painter.paint(cli::Color::bold, transport_)));
      std::string line = cli::title_line(kColumns);
      line.front() = '#';
      return sink_.write(line);
    }
    Cells titles, rules;
    for (const cli::Column& column : kColumns) {
      titles.push_back(column.title);
      rules.emplace_back(column.align == Align::right ? "---:" : "---");
    }
    sink_.write(fmt::format("\n### {}\n\n", transport_) + cli::markdown_line(titles) +
                cli::markdown_line(rules));
  }

  void line(const Cells& cells) {
    sink_.write(look_ == bench::Look::plain ? cli::table_line(kColumns, cells)
                                            : cli::markdown_line(cells));
  }

  Cells cells_of(const Cell& cell, const Row& row) const {
    const auto min_text = [](const std::optional<Figure>& figure) {
      return figure ? number_text(figure->min_us) : "-";
    };
    Cells cells = {std::string(bench::info(cell.operation).name),
                   std::to_string(cell.ranks),
                   cell.bytes == 0 ? "-" : size_text(cell.bytes),
                   std::string(name(row.state)),
                   min_text(row.ours),
                   min_text(row.best),
                   row.best ? cli::printable(cell.series[row.peer].subject) : "-"};
    if (!row.ratio) {
      for (int i = 0; i < 3; i++) cells.emplace_back("-");
      cells.push_back(cell.series[0].wrong() ? red("WRONG")
                      : row.ours             ? ""
                                             : fault_of(cell.series[0]));
      return cells;
    }
    const Ratio& ratio = *row.ratio;
    cells.push_back(ratio_text(ratio.min));
    cells.push_back(ratio_text(ratio.median));
    cells.push_back(ratio.sure ? interval_text(*ratio.sure) : "-");
    cells.push_back(ratio.lost() ? red("lost") : "");
    return cells;
  }

  std::string red(std::string_view text) const {
    return style_.painter.paint(cli::Color::red, text);
  }
  std::string fault_of(const Series& series) const {
    return series.error.empty() || series.error == kUnsupported ? "" : red("FAILED");
  }

  bench::Sink& sink_;
  bench::Style style_;
  bench::Look look_;
  std::string transport_;
  std::map<std::string, std::string> told_;  // the last fault of each library
};

}  // namespace

std::unique_ptr<Writer> make_table(bench::Sink& sink, const bench::Style& style, bench::Look look) {
  return std::make_unique<TableWriter>(sink, style, look);
}

}  // namespace hcomm::compare
