// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/table_writer.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/text.h"

namespace hcomm::bench {

namespace {

using cli::Align;
using cli::number_text;

std::vector<cli::Column> columns_of(const Style& style) {
  std::vector<cli::Column> columns = {
      {"size", Align::right, 10},  {"n", Align::right, 6},      {"min us", Align::right, 8},
      {"p50 us", Align::right, 9}, {"p99 us", Align::right, 8}, {"cv%", Align::right, 6},
      {"algbw", Align::right, 8},  {"busbw", Align::right, 8},
  };
  if (style.peaks) columns.push_back({"%peak", Align::right, 6});
  columns.push_back({"check", Align::left, 6});
  if (style.timestamps) columns.push_back({"time", Align::left, 27});
  columns.push_back({"algorithm"});
  return columns;
}

std::string percent_text(std::optional<double> share) {
  return share ? fmt::format("{:.1f}", *share * 100) : "-";
}

class TableWriter : public Writer {
 public:
  TableWriter(Sink& sink, const Style& style, Look look)
      : sink_(sink), style_(style), look_(look), columns_(columns_of(style)) {}

  void begin(const Facts& facts) override {
    if (style_.quiet) return;
    note(facts_line(facts));
    note(
        fmt::format("joined in {} ms; the communicator takes {:.1f} MiB a rank; check={}, "
                    "buffers={}",
                    number_text(facts.init_ms), facts.memory_mib, facts.check, facts.memory));
    if (!facts.peaks.empty()) note("%peak: of " + facts.peaks);
    note(
        "sizes: KiB, MiB (1024), as nccl-tests counts; time: the slowest rank; bandwidths: GB/s "
        "(1e9)");
  }

  void row(const Row& row) override {
    Series series = row.series;  // "startup.split" belongs to "startup"
    series.operation = series.operation.substr(0, series.operation.find('.'));
    if (!(series == series_) || !titled_) title(series);
    std::vector<std::string> cells = {
        row.bytes == 0 && row.series.type.empty() ? "-" : size_text(row.bytes),
        std::to_string(row.n),
        number_text(row.min_us),
        fmt::format("{}{}", row.settled ? "" : "~", number_text(row.p50_us)),
        number_text(row.p99_us),
        fmt::format("{:.1f}", row.cv * 100),
        number_text(row.algbw),
        number_text(row.busbw)};
    if (style_.peaks) cells.push_back(percent_text(peak_share(row)));
    cells.push_back(check_text(row));
    if (style_.timestamps) cells.push_back(row.time);
    cells.push_back(cli::printable(row.algorithm));
    sink_.write(look_ == Look::plain ? cli::table_line(columns_, cells)
                                     : cli::markdown_line(cells));
    if (!style_.per_iter) return;
    std::string times = "#   times us:";
    for (const double time : row.times_us) times += fmt::format(" {}", number_text(time));
    sink_.write(times + "\n");
  }

  void series_end(const std::vector<Row>& rows) override {
    titled_ = false;
    const Regimes r = regimes(rows);
    if (style_.quiet || (!r.latency_us && !r.busbw)) return;
    std::string text;
    if (r.latency_us) text += fmt::format("latency (<= 4KiB) {} us   ", number_text(*r.latency_us));
    if (r.crossover && rows.size() > 1)
      text += fmt::format("half of the best busbw from {}   ", size_text(*r.crossover));
    if (r.busbw) text += fmt::format("busbw (>= 4MiB) {} GB/s", number_text(*r.busbw));
    if (r.busbw && r.peak_share) text += fmt::format(" ({:.0f} % of peak)", *r.peak_share * 100);
    note(text.substr(0, text.find_last_not_of(' ') + 1));
  }

  void end(const Ending& ending) override {
    if (ending.wrong > 0)
      note(style_.painter.paint(cli::Color::red, fmt::format("{} wrong elements", ending.wrong)));
    if (!ending.complete) note("not complete: " + ending.reason);
  }

 private:
  void note(const std::string& text) {
    sink_.write(look_ == Look::plain ? fmt::format("# {}\n", text) : fmt::format("\n{}\n", text));
  }

  void title(const Series& series) {
    series_ = series;
    titled_ = true;
    const std::string text = title_text(series);
    if (look_ == Look::markdown) {
      std::vector<std::string> titles, rules;
      for (const cli::Column& column : columns_) {
        titles.push_back(column.title);
        rules.emplace_back(column.align == Align::right ? "---:" : "---");
      }
      sink_.write(fmt::format("\n### {}\n\n", text) + cli::markdown_line(titles) +
                  cli::markdown_line(rules));
      return;
    }
    sink_.write(fmt::format("#\n# {}\n", style_.painter.paint(cli::Color::bold, text)));
    std::string line = cli::title_line(columns_);
    line.front() = '#';
    sink_.write(line);
  }

  std::string check_text(const Row& row) const {
    if (row.checked == Checked::no) return "-";
    if (row.checked == Checked::ok) return style_.painter.paint(cli::Color::green, "ok");
    return style_.painter.paint(cli::Color::red, fmt::format("WRONG:{}", row.wrong));
  }

  Sink& sink_;
  Style style_;
  Look look_;
  std::vector<cli::Column> columns_;
  Series series_;
  bool titled_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_table_writer(Sink& sink, const Style& style, Look look) {
  return std::make_unique<TableWriter>(sink, style, look);
}

}  // namespace hcomm::bench
