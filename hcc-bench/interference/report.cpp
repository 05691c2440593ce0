// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/interference/report.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/text.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench::interference {

namespace {

using cli::Align;
using cli::Json;
using cli::number_text;

std::vector<cli::Column> table_columns() {
  return {{"# operation", Align::left, 14}, {"size", Align::right, 8},
          {"load", Align::right, 8},        {"priorities", Align::left, 10},
          {"n", Align::right, 5},           {"alone us", Align::right, 9},
          {"p99", Align::right, 9},         {"loaded us", Align::right, 9},
          {"p99", Align::right, 9},         {"p99 ratio", Align::right, 9},
          {"loads/s", Align::right, 8},     {"check", Align::left, 6}};
}

double p99_ratio(const Row& row) {
  return *row.loaded.p99 / *row.alone.p99;
}

std::vector<std::string> table_cells(const Row& row) {
  return {row.operation,
          size_text(row.bytes),
          size_text(row.load_bytes),
          row.priorities,
          std::to_string(row.loaded.n),
          number_text(row.alone.median * 1e6),
          number_text(*row.alone.p99 * 1e6),
          number_text(row.loaded.median * 1e6),
          number_text(*row.loaded.p99 * 1e6),
          fmt::format("{:.2f}", p99_ratio(row)),
          number_text(row.loads_per_s),
          row.wrong == 0 ? "ok" : fmt::format("WRONG:{}", row.wrong)};
}

Json row_json(const Row& row) {
  return {{"operation", row.operation},
          {"ranks", row.ranks},
          {"bytes", row.bytes},
          {"load_bytes", row.load_bytes},
          {"priorities", row.priorities},
          {"samples", row.loaded.n},
          {"alone_p50_us", row.alone.median * 1e6},
          {"alone_p99_us", *row.alone.p99 * 1e6},
          {"loaded_p50_us", row.loaded.median * 1e6},
          {"loaded_p99_us", *row.loaded.p99 * 1e6},
          {"p99_ratio", p99_ratio(row)},
          {"loads_per_s", row.loads_per_s},
          {"wrong_elements", row.wrong}};
}

Json titles() {
  Row row;
  row.alone.p99 = row.loaded.p99 = 1;
  return row_json(row);
}

}  // namespace

SheetPlan sheet_plan(const Options& options, const Facts& facts) {
  return {.format = options.format,
          .output = options.output,
          .quiet = options.common.quiet,
          .head = {facts_line(facts),
                   fmt::format("the operation comes every {:g} ms; medians and p99, of the "
                               "slowest rank; load: an all-reduce, always under way",
                               static_cast<double>(options.every_ns) / 1e6)},
          .columns = table_columns(),
          .titles = titles(),
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

}  // namespace hcomm::bench::interference
