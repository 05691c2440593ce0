// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/limits/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/text.h"

namespace hcomm::bench::limits {

namespace {

using cli::Align;
using cli::Json;
using cli::number_text;

// Of all pairs that were timed: "moved" where they were not all in one state.
Json distance_json(const Machine& machine, const std::vector<Limit>& limits) {
  std::optional<double> least, most;
  std::string_view all;
  for (const Limit& limit : limits) {
    if (!limit.timed || state(*limit.timed).empty()) continue;
    const Timed& timed = *limit.timed;
    least = std::min({least.value_or(1e9), *timed.before_ns, *timed.after_ns});
    most = std::max({most.value_or(0), *timed.before_ns, *timed.after_ns});
    all = all.empty() || all == state(timed) ? state(timed) : "moved";
  }
  if (!least) return nullptr;
  return {{"cores", {machine.cores[0], machine.cores[1]}},
          {"least_ns", *least},
          {"most_ns", *most},
          {"state", all}};
}

bool with_how(const Options& options) {
  return options.common.verbosity > 0;
}

std::vector<cli::Column> table_columns(const Options& options) {
  std::vector<cli::Column> columns = {{"# limit", Align::left, 28}, {"size", Align::right, 7},
                                      {"procs", Align::right, 5},   {"best us", Align::right, 9},
                                      {"p50 us", Align::right, 9},  {"GB/s", Align::right, 6},
                                      {"apart ns", Align::right, 9}};
  if (with_how(options)) columns.push_back({"how", Align::left, 34});
  columns.push_back({"bounds"});
  return columns;
}

std::string apart_text(const Limit& limit) {
  if (!limit.timed || state(*limit.timed).empty()) return "-";
  return fmt::format("{:.0f} {}", *distance_ns(*limit.timed), state(*limit.timed));
}

std::vector<std::string> table_cells(const Limit& limit, const Options& options) {
  std::optional<double> best_us, p50_us, rate = limit.bytes_per_s();
  if (limit.timed) best_us = limit.timed->best_us, p50_us = limit.timed->p50_us;
  if (rate) *rate /= 1e9;
  std::vector<std::string> cells = {limit.name,
                                    limit.bytes == 0 ? "-" : size_text(limit.bytes),
                                    std::to_string(limit.processes),
                                    number_text(best_us),
                                    number_text(p50_us),
                                    limit.bytes < kKiB ? "-" : number_text(rate),
                                    apart_text(limit)};
  if (with_how(options)) cells.push_back(limit.how.empty() ? "-" : limit.how);
  cells.push_back(limit.absent.empty() ? limit.bounds : "absent: " + limit.absent);
  return cells;
}

Json limit_json(const Limit& limit) {
  const std::optional<Timed>& timed = limit.timed;
  return {{"section", limit.section},
          {"name", limit.name},
          {"bytes", limit.bytes == 0 ? Json(nullptr) : Json(limit.bytes)},
          {"processes", limit.processes},
          {"best_us", timed ? Json(timed->best_us) : Json(nullptr)},
          {"p50_us", timed ? Json(timed->p50_us) : Json(nullptr)},
          {"bytes_per_s", cli::or_null(limit.bytes_per_s())},
          {"distance_ns", cli::or_null(timed ? distance_ns(*timed) : std::nullopt)},
          {"state", timed ? cli::or_null(state(*timed)) : Json(nullptr)},
          {"how", cli::or_null(limit.how)},
          {"bounds", limit.bounds},
          {"absent", cli::or_null(limit.absent)}};
}

std::vector<std::string> head_of(const Machine& machine) {
  return {fmt::format("{}; {}, cores {}, last-level cache {}, {} kernels", machine.facts.tool,
                      cli::printable(machine.facts.processor), fmt::join(machine.cores, " "),
                      size_text(machine.last_level_cache_bytes), machine.kernels),
          "sizes: KiB, MiB (1024); GB/s: 1e9 bytes of one buffer a second, from the least time"};
}

}  // namespace

SheetPlan sheet_plan(const Options& options, const Machine& machine,
                     const std::vector<Limit>& measured) {
  return {
      .format = options.format,
      .output = options.output,
      .quiet = options.common.quiet,
      .head = head_of(machine),
      .columns = table_columns(options),
      .titles = limit_json(Limit{}),
      .document = [machine, &measured](const Json&) { return document_json(machine, measured); }};
}

Sheet::Entry entry_of(const Limit& limit, const Options& options) {
  return {table_cells(limit, options), limit_json(limit), limit.section};
}

Json document_json(const Machine& machine, const std::vector<Limit>& limits) {
  const Facts& facts = machine.facts;
  Json json = cli::document(kSchema, kSchemaVersion);
  json["system"] = {{"tool", facts.tool},
                    {"time", facts.time},
                    {"kernel", facts.kernel},
                    {"processor", facts.processor},
                    {"governor", cli::or_null(facts.governor)},
                    {"cores", machine.cores},
                    {"last_level_cache_bytes", machine.last_level_cache_bytes},
                    {"kernels", machine.kernels}};
  json["distance"] = distance_json(machine, limits);
  json["limits"] = Json::array();
  for (const Limit& limit : limits) json["limits"].push_back(limit_json(limit));
  return json;
}

}  // namespace hcomm::bench::limits
