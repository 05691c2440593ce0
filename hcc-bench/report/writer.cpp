// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "cli/text.h"
#include "hcc-bench/report/table_writer.h"

namespace hcomm::bench {

namespace {

using cli::Json;

constexpr int kSchemaVersion = 1;

Json checked_json(Checked checked) {
  if (checked == Checked::no) return nullptr;
  return checked == Checked::ok ? "ok" : "wrong";
}

Json ending_json(const Ending& ending) {
  Json json = {{"complete", ending.complete}, {"wrong_elements", ending.wrong}};
  if (!ending.reason.empty()) json["reason"] = ending.reason;
  return json;
}

// {"schema":..., "system":{...}, "rows":[ and rows, one a line, and the rest.
class JsonWriter : public Writer {
 public:
  JsonWriter(Sink& sink, const Style& style) : sink_(sink), style_(style) {}
  void begin(const Facts& facts) override {
    const std::string head = cli::json_line(cli::document("hcc-bench", kSchemaVersion));
    sink_.write(fmt::format("{},\n\"system\":{},\n\"rows\":[", head.substr(0, head.size() - 1),
                            cli::json_line(facts_json(facts))));
  }
  void row(const Row& row) override {
    sink_.write(first_ ? "\n" : ",\n");
    sink_.write(cli::json_line(row_json(row, style_)));
    first_ = false;
  }
  void end(const Ending& ending) override {
    sink_.write(fmt::format("\n],\n\"end\":{}}}\n", cli::json_line(ending_json(ending))));
  }

 private:
  Sink& sink_;
  Style style_;
  bool first_ = true;
};

class NdjsonWriter : public Writer {
 public:
  NdjsonWriter(Sink& sink, const Style& style) : sink_(sink), style_(style) {}
  void begin(const Facts& facts) override {
    Json line = cli::document("hcc-bench", kSchemaVersion);
    line["record"] = "system";
    line.update(facts_json(facts));
    sink_.write(cli::json_line(line) + "\n");
  }
  void row(const Row& row) override {
    Json line = {{"record", "row"}};
    line.update(row_json(row, style_));
    sink_.write(cli::json_line(line) + "\n");
  }
  void end(const Ending& ending) override {
    Json line = {{"record", "end"}};
    line.update(ending_json(ending));
    sink_.write(cli::json_line(line) + "\n");
  }

 private:
  Sink& sink_;
  Style style_;
};

class CsvWriter : public Writer {
 public:
  CsvWriter(Sink& sink, const Style& style) : sink_(sink), style_(style) {
    style_.timestamps = true;  // the columns are always the same
  }
  void begin(const Facts&) override {
    std::vector<std::string> titles;
    const Json empty = row_json(Row{}, style_);
    for (const auto& [key, value] : empty.items()) titles.push_back(key);
    sink_.write(cli::csv_line(titles));
  }
  void row(const Row& row) override {
    std::vector<std::string> cells;
    const Json json = row_json(row, style_);
    for (const auto& [key, value] : json.items()) cells.push_back(csv_cell(value));
    sink_.write(cli::csv_line(cells));
  }
  void end(const Ending&) override {}

 private:
  Sink& sink_;
  Style style_;
};

}  // namespace

Sink::Sink(const std::string& path) : name_(path), fd_(STDOUT_FILENO) {
  if (path.empty()) {
    name_ = "standard output";
    return;
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_system(errno, "create {}", path);
}

Sink::~Sink() {
  if (fd_ != STDOUT_FILENO) ::close(fd_);
}

void Sink::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system(errno, "write {}", name_);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

Json row_json(const Row& row, const Style& style) {
  const Series& series = row.series;
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  Json json = {{"operation", series.operation},
               {"dtype", text(series.type)},
               {"redop", text(series.redop)},
               {"root", text(series.root)},
               {"place", text(series.place)},
               {"ranks", series.ranks},
               {"bytes", row.bytes},
               {"requested_bytes", row.requested},
               {"count", row.count},
               {"samples", row.n},
               {"batch", row.batch},
               {"min_us", row.min_us},
               {"p50_us", row.p50_us},
               {"p99_us", cli::or_null(row.p99_us)},
               {"cv", row.cv},
               {"noise", row.noise},
               {"settled", row.settled},
               {"algbw_gb_per_s", cli::or_null(row.algbw)},
               {"busbw_gb_per_s", cli::or_null(row.busbw)},
               {"peak_bytes_per_s", cli::or_null(row.peak)},
               {"check", checked_json(row.checked)},
               {"wrong_elements", row.wrong},
               {"algorithm", text(row.algorithm)}};
  if (style.timestamps) json["time"] = text(row.time);
  if (style.per_iter) json["times_us"] = row.times_us;
  return json;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return cli::json_line(value);
  std::string text;
  for (const Json& each : value) {
    if (!text.empty()) text += ';';
    text += cli::json_line(each);
  }
  return text;
}

Json machine_json(const Facts& facts) {
  return {{"tool", facts.tool},
          {"time", facts.time},
          {"cores", facts.cores},
          {"kernel", facts.kernel},
          {"processor", facts.processor},
          {"governor", facts.governor.empty() ? Json(nullptr) : Json(facts.governor)},
          {"buffers", facts.memory},
          {"busy_share_before", cli::or_null(facts.busy)},
          {"environment", facts.environment}};
}

Json facts_json(const Facts& facts) {
  return {{"tool", facts.tool},
          {"library", facts.library},
          {"time", facts.time},
          {"ranks", facts.ranks},
          {"hosts", facts.hosts},
          {"ranks_of_hosts", facts.hosts_text},
          {"cores", facts.cores},
          {"kernel", facts.kernel},
          {"processor", facts.processor},
          {"governor", facts.governor.empty() ? Json(nullptr) : Json(facts.governor)},
          {"init_ms", facts.init_ms},
          {"memory_mib_per_rank", facts.memory_mib},
          {"check", facts.check},
          {"buffers", facts.memory},
          {"peaks", facts.peaks.empty() ? Json(nullptr) : Json(facts.peaks)},
          {"environment", facts.environment}};
}

std::unique_ptr<Writer> make_writer(std::string_view format, Sink& sink, const Style& style) {
  if (format == "json") return std::make_unique<JsonWriter>(sink, style);
  if (format == "ndjson") return std::make_unique<NdjsonWriter>(sink, style);
  if (format == "csv") return std::make_unique<CsvWriter>(sink, style);
  return make_table_writer(sink, style, format == "md" ? Look::markdown : Look::plain);
}

}  // namespace hcomm::bench
