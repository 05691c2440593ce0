// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/baseline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/table.h"
#include "cli/text.h"
#include "hcc-bench/measure/statistics.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench {

namespace {

using cli::Json;

constexpr size_t kKeptSamples = 200;
constexpr double kChance = 0.01;

std::string key(const Series& series, size_t bytes) {
  return fmt::format("{} {} {} {} {} {} {}", series.operation, series.type, series.redop,
                     series.root, series.place, series.ranks, bytes);
}

std::string text_or_empty(const Json& row, const char* name) {
  return row.at(name).is_null() ? std::string() : row.at(name).get<std::string>();
}

}  // namespace

BaseFile::BaseFile(const std::string& path) {
  std::error_code ignored;
  path_ = std::filesystem::weakly_canonical(path, ignored).string();  // behind a link
  if (path_.empty()) path_ = path;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail(Code::invalid_argument, "--save: {} is there and is no file", path);
  part_ = fmt::format("{}.{}", path_, getpid());
  Sink{part_};
  unlink(part_.c_str());
}

void BaseFile::save(const Facts& facts, const std::vector<Row>& rows) const {
  Json json = cli::document("hcc-bench", 1);
  json["system"] = facts_json(facts);
  json["rows"] = Json::array();
  for (const Row& row : rows) {
    Json each = row_json(row, Style{.timestamps = true});
    each["times_us"] = thinned(row.times_us, kKeptSamples);
    json["rows"].push_back(std::move(each));
  }
  try {
    Sink(part_).write(cli::json_line(json) + "\n");
  } catch (const Error&) {
    unlink(part_.c_str());
    throw;
  }
  if (rename(part_.c_str(), path_.c_str()) != 0)
    fail_system(errno, "rename {} to {}", part_, path_);
}

Baseline::Baseline(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(Code::invalid_argument, "--compare: cannot read {}", path);
  try {
    const Json json = Json::parse(file);
    for (const Json& row : json.at("rows")) {
      const Series series{row.at("operation").get<std::string>(),
                          text_or_empty(row, "dtype"),
                          text_or_empty(row, "redop"),
                          text_or_empty(row, "root"),
                          text_or_empty(row, "place"),
                          row.at("ranks").get<int>()};
      Kept& kept = rows_[key(series, row.at("bytes").get<size_t>())];
      kept.p50_us = row.at("p50_us").get<double>();
      if (row.contains("times_us")) kept.times_us = row["times_us"].get<std::vector<double>>();
    }
  } catch (const Json::exception& error) {
    fail(Code::invalid_argument, "--compare: {} was not written by hcc-bench --save or --json: {}",
         path, error.what());
  }
}

bool Baseline::has(const Row& row) const {
  const auto found = rows_.find(key(row.series, row.bytes));
  return found != rows_.end() && found->second.p50_us > 0;
}

std::optional<Change> Baseline::compare(const Row& row, double limit) const {
  if (!has(row)) return std::nullopt;
  const Kept& base = rows_.at(key(row.series, row.bytes));
  Change change{row, base.p50_us, row.p50_us / base.p50_us, 0};
  const bool slower = change.ratio > 1 + limit, faster = change.ratio < 1 / (1 + limit);
  if (!slower && !faster) return std::nullopt;
  if (!base.times_us.empty() && !row.times_us.empty()) {
    const std::vector<double> now = thinned(row.times_us, kKeptSamples);
    change.probability = slower ? probability_not_slower(base.times_us, now)
                                : probability_not_slower(now, base.times_us);
    if (change.probability > kChance) return std::nullopt;
  }
  return change;
}

std::string changes_text(const std::vector<Change>& changes) {
  cli::Table table({{"operation"},
                    {"size", cli::Align::right},
                    {"base us", cli::Align::right},
                    {"now us", cli::Align::right},
                    {"change", cli::Align::right},
                    {"chance", cli::Align::right}});
  for (const Change& change : changes) {
    const Series& series = change.now.series;
    std::string name = series.operation;
    for (const std::string& part : {series.type, series.redop, series.root, series.place})
      if (!part.empty()) name += fmt::format(" {}", part);
    table.add({name, size_text(change.now.bytes), cli::number_text(change.base_p50_us),
               cli::number_text(change.now.p50_us),
               fmt::format("{:+.1f} %", (change.ratio - 1) * 100),
               fmt::format("{:.4f}", change.probability)});
  }
  return table.empty() ? std::string() : table.text();
}

}  // namespace hcomm::bench
