// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/report.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/text.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench::overlap {

namespace {

using cli::Align;
using cli::Json;
using cli::number_text;

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

std::vector<std::string> head_of(const Options& options, const Facts& facts) {
  const std::string how = options.progress == "stream"
                              ? "the worker of a stream moves the operation"
                              : fmt::format("the caller moves it: hcommProgress every {:g} us",
                                            static_cast<double>(options.every_ns) / 1e3);
  return {facts_line(facts), how + "; medians, of the slowest rank",
          "overlap = 1 - (both - compute) / comm; 95 %: its interval over the rounds"};
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

}  // namespace

SheetPlan sheet_plan(const Options& options, const Facts& facts) {
  return {.format = options.format,
          .output = options.output,
          .quiet = options.common.quiet,
          .head = head_of(options, facts),
          .columns = table_columns(),
          .titles = row_json(Row{}),
          .document = [system = facts_json(facts)](Json rows) {
            Json json = cli::document(kSchema, kSchemaVersion);
            json["system"] = system;
            json["rows"] = std::move(rows);
            return json;
          }};
}

Sheet::Entry entry_of(const Row& row) {
  return {table_cells(row), row_json(row)};
}

}  // namespace hcomm::bench::overlap
