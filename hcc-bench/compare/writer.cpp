// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/writer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"
#include "cli/json.h"
#include "cli/text.h"
#include "hcc-bench/compare/table.h"

namespace hcomm::compare {

namespace {

using cli::Json;

constexpr int kSchemaVersion = 1;

// Three digits after the comma are a nanosecond.
Json us(double value) {
  return std::round(value * 1e4) / 1e4;
}

// A library in one state of a cell, and HCOMM's ratio to it.
Json figure_json(const Cell& cell, const Series& series, State state) {
  const std::optional<Figure> seen = figure(series, state);
  const Series& ours = cell.series[0];
  const bool compared = &series != &ours && !series.wrong() && !ours.wrong();
  const std::optional<Ratio> to = compared ? ratio(ours, series, state) : std::nullopt;
  const auto number = [](bool known, double value) { return known ? us(value) : Json(nullptr); };
  const bool sure = to && to->sure;
  int64_t errors = 0;
  Json least = Json::array(), middle = Json::array();
  for (const Turn& turn : series.turns) {
    errors += turn.measured.errors;
    if (turn.measured.state() != state) continue;
    least.push_back(us(turn.measured.min_us));
    middle.push_back(us(turn.measured.median_us));
  }
  return {{"state", name(state)},
          {"subject", series.subject},
          {"version", cli::or_null(series.version)},
          {"turns", seen ? seen->turns : 0},
          {"min_us", number(seen.has_value(), seen ? seen->min_us : 0)},
          {"p50_us", number(seen.has_value(), seen ? seen->median_us : 0)},
          {"p99_us", number(seen.has_value(), seen ? seen->p99_us : 0)},
          {"hcomm_ratio_min", number(to.has_value(), to ? to->min : 0)},
          {"hcomm_ratio_p50", number(to.has_value(), to ? to->median : 0)},
          {"hcomm_ratio_low", number(sure, sure ? to->sure->low : 0)},
          {"hcomm_ratio_high", number(sure, sure ? to->sure->high : 0)},
          {"wrong_elements", errors},
          {"error", cli::or_null(series.error)},
          {"turns_min_us", least},
          {"turns_p50_us", middle}};
}

Json place_json(const Cell& cell) {
  return {{"transport", cell.transport},
          {"operation", bench::info(cell.operation).name},
          {"ranks", cell.ranks},
          {"bytes", cell.bytes}};
}

Json turns_json(const Series& series) {
  Json list = Json::array();
  for (const Turn& turn : series.turns) {
    const Measurement& m = turn.measured;
    const auto distance = [](double ns) { return ns < 0 ? Json(nullptr) : Json(ns); };
    list.push_back({{"round", turn.round},
                    {"state", name(m.state())},
                    {"min_us", us(m.min_us)},
                    {"p50_us", us(m.median_us)},
                    {"p99_us", us(m.p99_us)},
                    {"samples", m.batches},
                    {"batch", m.batch},
                    {"wrong_elements", m.errors},
                    {"core_distance_before_ns", distance(m.before_ns)},
                    {"core_distance_after_ns", distance(m.after_ns)}});
  }
  return list;
}

Json cell_json(const Cell& cell) {
  Json json = place_json(cell);
  json["rows"] = Json::array();
  for (const Row& row : rows_of(cell)) {
    Json line = {{"state", name(row.state)},
                 {"best_peer", row.best ? Json(cell.series[row.peer].subject) : Json(nullptr)},
                 {"ratio_min", row.ratio ? us(row.ratio->min) : Json(nullptr)},
                 {"lost", row.ratio ? Json(row.ratio->lost()) : Json(nullptr)},
                 {"subjects", Json::array()}};
    for (const Series& series : cell.series)
      if (figure(series, row.state))
        line["subjects"].push_back(figure_json(cell, series, row.state));
    json["rows"].push_back(line);
  }
  json["subjects"] = Json::array();
  for (const Series& series : cell.series)
    json["subjects"].push_back({{"subject", series.subject},
                                {"version", cli::or_null(series.version)},
                                {"error", cli::or_null(series.error)},
                                {"turns", turns_json(series)}});
  return json;
}

class JsonWriter : public Writer {
 public:
  explicit JsonWriter(bench::Sink& sink) : sink_(sink) {}
  void begin(const bench::Facts& facts) override {
    const std::string head = cli::json_line(cli::document("hcc-bench-compare", kSchemaVersion));
    sink_.write(fmt::format("{},\n\"system\":{},\n\"cells\":[", head.substr(0, head.size() - 1),
                            cli::json_line(bench::machine_json(facts))));
  }
  void cell(const Cell& cell) override {
    sink_.write(first_ ? "\n" : ",\n");
    sink_.write(cli::json_line(cell_json(cell)));
    first_ = false;
  }
  void end(const Ending& ending) override {
    Json list = Json::array();
    for (const Summary& each : ending.summaries)
      list.push_back({{"transport", each.transport},
                      {"geometric_mean", each.rows > 0 ? us(each.mean) : Json(nullptr)},
                      {"rows", each.rows},
                      {"lost", each.lost},
                      {"worst", cli::or_null(each.worst)}});
    const Json end = {{"complete", ending.reason.empty()}, {"reason", cli::or_null(ending.reason)}};
    sink_.write(fmt::format("\n],\n\"summaries\":{},\n\"end\":{}}}\n", cli::json_line(list),
                            cli::json_line(end)));
  }

 private:
  bench::Sink& sink_;
  bool first_ = true;
};

class CsvWriter : public Writer {
 public:
  explicit CsvWriter(bench::Sink& sink) : sink_(sink) {}
  void begin(const bench::Facts&) override {
    Cell empty;
    empty.series.resize(1);
    std::vector<std::string> titles;
    const Json json = line(empty, empty.series[0], State::unknown);
    for (const auto& [key, value] : json.items()) titles.push_back(key);
    sink_.write(cli::csv_line(titles));
  }
  void cell(const Cell& cell) override {
    for (const Series& series : cell.series) {
      bool any = false;
      for (const State state : {State::near, State::far, State::unknown, State::mixed}) {
        if (!figure(series, state)) continue;
        write(line(cell, series, state));
        any = true;
      }
      if (!any) write(line(cell, series, State::unknown));
    }
  }
  void end(const Ending&) override {}

 private:
  static Json line(const Cell& cell, const Series& series, State state) {
    Json json = place_json(cell);
    json.update(figure_json(cell, series, state));
    return json;
  }
  void write(const Json& json) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : json.items()) cells.push_back(bench::csv_cell(value));
    sink_.write(cli::csv_line(cells));
  }

  bench::Sink& sink_;
};

}  // namespace

std::unique_ptr<Writer> make_writer(std::string_view format, bench::Sink& sink,
                                    const bench::Style& style) {
  if (format == "json") return std::make_unique<JsonWriter>(sink);
  if (format == "csv") return std::make_unique<CsvWriter>(sink);
  return make_table(sink, style, format == "md" ? bench::Look::markdown : bench::Look::plain);
}

}  // namespace hcomm::compare
