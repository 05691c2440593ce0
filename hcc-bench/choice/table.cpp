// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/table.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/text.h"

namespace hcomm::choice {

namespace {

using cli::Align;
using cli::number_text;

const std::vector<cli::Column> kColumns = {
    {"size", Align::right, 10},  {"choice us", Align::right, 9}, {"best us", Align::right, 9},
    {"ratio", Align::right, 6},  {"95 %", Align::right, 10},     {"verdict", Align::left, 7},
    {"choice", Align::left, 42}, {"best forced", Align::left}};

class TableWriter : public Writer {
 public:
  TableWriter(bench::Sink& sink, const bench::Style& style, bench::Look look)
      : sink_(sink), style_(style), look_(look) {}

  void begin(const bench::Facts& facts) override {
    if (style_.quiet) return;
    note(fmt::format("{}, {}; {} rank{} ({}), {} cores here", facts.tool, facts.library,
                     facts.ranks, facts.ranks == 1 ? "" : "s", cli::printable(facts.hosts_text),
                     facts.cores));
    note(
        "sizes as nccl-tests counts; time: the slowest rank, median of the turns; ratio: the "
        "choice by the best");
  }

  void cell(const Cell& cell) override {
    if (!titled_ || !(cell.series == series_)) title(cell.series);
    const std::optional<Judgement> j = judge(cell);
    const Rival& chosen = cell.rivals[0];
    std::vector<std::string> cells = {
        cell.bytes == 0 && cell.series.type.empty() ? "-" : size_text(cell.bytes),
        chosen.turns_us.empty() ? "-" : number_text(time_us(chosen)),
        j ? number_text(time_us(cell.rivals[j->best])) : "-",
        j ? fmt::format("{:.2f}", j->ratio.value) : "-",
        j ? fmt::format("{:.2f}..{:.2f}", j->ratio.sure.low, j->ratio.sure.high) : "-",
        verdict_text(cell, j),
        cli::printable(chosen.plan),
        j ? cli::printable(cell.rivals[j->best].plan) : "-"};
    sink_.write(look_ == bench::Look::plain ? cli::table_line(kColumns, cells)
                                            : cli::markdown_line(cells));
  }

  void end(const Ending& ending) override {
    note(style_.painter.paint(cli::Color::bold, ending.tally.text()));
    if (!ending.reason.empty()) note("not complete: " + ending.reason);
  }

 private:
  void note(const std::string& text) {
    sink_.write(look_ == bench::Look::plain ? fmt::format("# {}\n", text)
                                            : fmt::format("\n{}\n", text));
  }

  void title(const bench::Series& series) {
    titled_ = true;
    series_ = series;
    const std::string text = bench::title_text(series);
    if (look_ == bench::Look::plain) {
      sink_.write(fmt::format("#\n# {}\n", style_.painter.paint(cli::Color::bold, text)));
      std::string line = cli::title_line(kColumns);
      line.front() = '#';
      return sink_.write(line);
    }
    std::vector<std::string> titles, rules;
    for (const cli::Column& column : kColumns) {
      titles.push_back(column.title);
      rules.emplace_back(column.align == Align::right ? "---:" : "---");
    }
    sink_.write(fmt::format("\n### {}\n\n", text) + cli::markdown_line(titles) +
                cli::markdown_line(rules));
  }

  std::string verdict_text(const Cell& cell, const std::optional<Judgement>& j) const {
    if (wrong(cell) > 0) return style_.painter.paint(cli::Color::red, "WRONG");
    if (!j) return "-";
    const std::string text(name(j->verdict));
    return j->verdict == Verdict::worse ? style_.painter.paint(cli::Color::red, text) : text;
  }

  bench::Sink& sink_;
  bench::Style style_;
  bench::Look look_;
  bench::Series series_;
  bool titled_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_table(bench::Sink& sink, const bench::Style& style, bench::Look look) {
  return std::make_unique<TableWriter>(sink, style, look);
}

}  // namespace hcomm::choice
