// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/writer.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/text.h"
#include "hcc-bench/choice/table.h"

namespace hcomm::choice {

namespace {

using cli::Json;

constexpr int kSchemaVersion = 1;

Json rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

Json place_json(const Cell& cell) {
  const bench::Series& s = cell.series;
  return {{"operation", s.operation},
          {"dtype", cli::or_null(s.type)},
          {"redop", cli::or_null(s.redop)},
          {"root", cli::or_null(s.root)},
          {"place", cli::or_null(s.place)},
          {"ranks", s.ranks},
          {"bytes", cell.bytes}};
}

// What is said of a cell, null where nothing could be.
Json judgement_json(const Cell& cell) {
  const std::optional<Judgement> j = judge(cell);
  return {{"best", j ? Json(cell.rivals[j->best].algorithm) : Json(nullptr)},
          {"ratio", j ? rounded(j->ratio.value) : Json(nullptr)},
          {"ratio_low", j ? rounded(j->ratio.sure.low) : Json(nullptr)},
          {"ratio_high", j ? rounded(j->ratio.sure.high) : Json(nullptr)},
          {"verdict", j ? Json(name(j->verdict)) : Json(nullptr)}};
}

// The ratios are the choice's time by this one's.
Json rival_json(const Cell& cell, const Rival& rival) {
  const bool measured = !rival.turns_us.empty();
  const auto to = rival.algorithm.empty() ? std::nullopt : ratio(cell.rivals[0], rival);
  return {{"forced", cli::or_null(rival.algorithm)},
          {"actions", cli::or_null(rival.actions)},
          {"plan", rival.plan},
          {"turns", rival.turns_us.size()},
          {"p50_us", measured ? rounded(time_us(rival)) : Json(nullptr)},
          {"choice_ratio", to ? rounded(to->value) : Json(nullptr)},
          {"choice_ratio_low", to ? rounded(to->sure.low) : Json(nullptr)},
          {"choice_ratio_high", to ? rounded(to->sure.high) : Json(nullptr)},
          {"wrong_elements", rival.wrong}};
}

Json cell_json(const Cell& cell) {
  Json json = place_json(cell);
  json.update(judgement_json(cell));
  json["plans"] = Json::array();
  for (const Rival& rival : cell.rivals) {
    Json line = rival_json(cell, rival);
    line["turns_us"] = Json::array();
    for (const double us : rival.turns_us) line["turns_us"].push_back(rounded(us));
    json["plans"].push_back(line);
  }
  return json;
}

Json ending_json(const Ending& ending) {
  const Tally& t = ending.tally;
  return {{"cells", t.cells},
          {"good", t.good},
          {"outliers", t.outliers},
          {"worst", t.worst_where.empty() ? Json(nullptr) : rounded(t.worst)},
          {"worst_where", cli::or_null(t.worst_where)},
          {"complete", ending.reason.empty()},
          {"reason", cli::or_null(ending.reason)}};
}

Json head() {
  return cli::document("hcc-bench-sweep", kSchemaVersion);
}

class JsonWriter : public Writer {
 public:
  explicit JsonWriter(bench::Sink& sink) : sink_(sink) {}
  void begin(const bench::Facts& facts) override {
    const std::string open = cli::json_line(head());
    sink_.write(fmt::format("{},\n\"system\":{},\n\"cells\":[", open.substr(0, open.size() - 1),
                            cli::json_line(bench::facts_json(facts))));
  }
  void cell(const Cell& cell) override {
    sink_.write(fmt::format("{}\n{}", first_ ? "" : ",", cli::json_line(cell_json(cell))));
    first_ = false;
  }
  void end(const Ending& ending) override {
    sink_.write(fmt::format("\n],\n\"end\":{}}}\n", cli::json_line(ending_json(ending))));
  }

 private:
  bench::Sink& sink_;
  bool first_ = true;
};

class NdjsonWriter : public Writer {
 public:
  explicit NdjsonWriter(bench::Sink& sink) : sink_(sink) {}
  void begin(const bench::Facts& facts) override {
    Json json = head();
    json["system"] = bench::facts_json(facts);
    line(json);
  }
  void cell(const Cell& cell) override { line(cell_json(cell)); }
  void end(const Ending& ending) override { line(ending_json(ending)); }

 private:
  void line(const Json& json) { sink_.write(cli::json_line(json) + "\n"); }
  bench::Sink& sink_;
};

class CsvWriter : public Writer {
 public:
  explicit CsvWriter(bench::Sink& sink) : sink_(sink) {}
  void begin(const bench::Facts&) override {
    Cell empty;
    empty.rivals.resize(1);
    std::vector<std::string> titles;
    const Json json = line_of(empty, empty.rivals[0]);
    for (const auto& [key, value] : json.items()) titles.push_back(key);
    sink_.write(cli::csv_line(titles));
  }
  void cell(const Cell& cell) override {
    for (const Rival& rival : cell.rivals) {
      std::vector<std::string> cells;
      const Json json = line_of(cell, rival);
      for (const auto& [key, value] : json.items()) cells.push_back(bench::csv_cell(value));
      sink_.write(cli::csv_line(cells));
    }
  }
  void end(const Ending&) override {}

 private:
  static Json line_of(const Cell& cell, const Rival& rival) {
    Json json = place_json(cell);
    json.update(judgement_json(cell));
    json.update(rival_json(cell, rival));
    return json;
  }
  bench::Sink& sink_;
};

}  // namespace

std::unique_ptr<Writer> make_writer(std::string_view format, bench::Sink& sink,
                                    const bench::Style& style) {
  if (format == "json") return std::make_unique<JsonWriter>(sink);
  if (format == "ndjson") return std::make_unique<NdjsonWriter>(sink);
  if (format == "csv") return std::make_unique<CsvWriter>(sink);
  return make_table(sink, style, format == "md" ? bench::Look::markdown : bench::Look::plain);
}

}  // namespace hcomm::choice
