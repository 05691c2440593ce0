// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "base/fd.h"
#include "hcc-bench/report/baseline.h"
#include "hcc-bench/report/output.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench {
namespace {

using cli::Json;

class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/hcc-bench-test-XXXXXX";
    ::close(mkstemp(name));
    path = name;
  }
  ~Scratch() { unlink(path.c_str()); }
  std::string text() const {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string path;
};

Row sample_row(size_t bytes = 1024, double p50_us = 10) {
  Row row;
  row.series = {"allreduce", "float32", "sum", "", "out", 8};
  row.bytes = row.requested = bytes;
  row.n = 100;
  row.p50_us = row.min_us = p50_us;
  row.algbw = static_cast<double>(bytes) / p50_us / 1e3;
  row.busbw = *row.algbw * 1.75;
  row.checked = Checked::ok;
  for (int i = 0; i < 100; i++) row.times_us.push_back(p50_us + 0.01 * (i % 10));
  return row;
}

const std::string kOdd = "quote\" comma, line\nbreak \x1b[31m \xff tail";

std::string written(std::string_view format, const std::vector<Row>& rows, bool end) {
  Scratch scratch;
  Sink sink(scratch.path);
  const auto writer = make_writer(format, sink, Style{});
  Facts facts;
  facts.hosts_text = kOdd;
  facts.environment = {"HCOMM_NAME=" + kOdd};
  writer->begin(facts);
  for (const Row& row : rows) writer->row(row);
  writer->series_end(rows);
  if (end) writer->end({0, true, ""});
  return scratch.text();
}

TEST(Writers, JsonIsValidWithOddStringsAndNumbers) {
  Row odd = sample_row();
  odd.algorithm = kOdd;
  odd.cv = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(written("json", {sample_row(), odd}, true));
  EXPECT_EQ(json["schema"], "hcc-bench");
  EXPECT_EQ(json["version"], 1);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["bytes"], 1024);
  EXPECT_TRUE(json["rows"][0]["p99_us"].is_null());
  EXPECT_TRUE(json["rows"][0]["root"].is_null());
  EXPECT_TRUE(json["rows"][1]["cv"].is_null());
  EXPECT_EQ(json["end"]["complete"], true);
  EXPECT_EQ(Json::parse(written("json", {}, true))["rows"].size(), 0u);
}

TEST(Writers, NdjsonIsValidAtEveryLine) {
  Row odd = sample_row();
  odd.algorithm = kOdd;
  std::stringstream lines(written("ndjson", {sample_row(), odd}, false));  // cut short
  int count = 0;
  for (std::string line; std::getline(lines, line); count++)
    EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(count, 3);
}

TEST(Writers, CsvQuotesAndKeepsItsColumns) {
  Row odd = sample_row();
  odd.algorithm = "a,\"b\"";
  const std::string text = written("csv", {odd}, true);
  EXPECT_NE(text.find("\"a,\"\"b\"\"\""), std::string::npos) << text;
  const std::string head = text.substr(0, text.find('\n'));
  EXPECT_NE(head.find("operation,dtype,redop,root,place,ranks,bytes"), std::string::npos);
}

TEST(Writers, TablesHaveNoEscapes) {
  Row odd = sample_row();
  odd.algorithm = kOdd;
  for (const char* format : {"table", "md"}) {
    const std::string text = written(format, {odd}, true);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_NE(text.find("1KiB"), std::string::npos);
  }
}

TEST(Writers, AFullDiskIsToldNotIgnored) {
  Sink sink("/dev/full");
  EXPECT_THROW(sink.write("x"), Error);
  EXPECT_THROW(Sink("/nonexistent/x"), Error);
}

TEST(Regimes, NeverOneAverage) {
  std::vector<Row> rows;
  for (size_t bytes = 1024; bytes <= size_t{1} << 24; bytes *= 4)
    rows.push_back(sample_row(bytes, 10 + static_cast<double>(bytes) / 1e4));
  const Regimes r = regimes(rows);
  ASSERT_TRUE(r.latency_us && r.crossover && r.busbw);
  EXPECT_NEAR(*r.latency_us, 10.1, 0.1);
  EXPECT_EQ(*r.crossover, size_t{1} << 18);  // 262144 B in 36 us: 12.7 of 17.4 GB/s
  EXPECT_GT(*r.busbw, 17);
  EXPECT_FALSE(regimes({}).latency_us);
}

// The gate against a synthetic base.
TEST(Baseline, FindsWhatIsSlower) {
  Scratch scratch;
  BaseFile(scratch.path).save(Facts{}, {sample_row(1024, 10), sample_row(2048, 20)});
  const Baseline base(scratch.path);
  EXPECT_FALSE(base.compare(sample_row(1024, 10.2), 0.05));
  const auto slower = base.compare(sample_row(1024, 11), 0.05);
  ASSERT_TRUE(slower);
  EXPECT_NEAR(slower->ratio, 1.1, 1e-9);
  EXPECT_LT(slower->probability, 0.01);
  const auto faster = base.compare(sample_row(2048, 10), 0.05);
  ASSERT_TRUE(faster);
  EXPECT_LT(faster->ratio, 1);
  EXPECT_EQ(base.size(), 2u);
  EXPECT_TRUE(base.has(sample_row(2048)));
  EXPECT_FALSE(base.has(sample_row(4096)));
  EXPECT_NE(changes_text({*slower}).find("+10.0 %"), std::string::npos);
  EXPECT_EQ(changes_text({}), "");
}

TEST(Baseline, ChanceIsNoRegression) {
  Scratch scratch;
  Row noisy = sample_row();
  noisy.times_us = {5, 20, 9, 14, 10};
  BaseFile(scratch.path).save(Facts{}, {noisy});
  Row now = sample_row(1024, 10.8);
  now.times_us = {6, 19, 11, 10.8, 13};
  EXPECT_FALSE(Baseline(scratch.path).compare(now, 0.05));
}

TEST(Baseline, RefusesWhatItDidNotWrite) {
  Scratch scratch;
  for (const char* text : {"", "{}", "{\"rows\":[{}]}", "not json"}) {
    std::ofstream(scratch.path) << text;
    EXPECT_THROW(Baseline{scratch.path}, Error) << text;
  }
  EXPECT_THROW(Baseline{"/nonexistent/base.json"}, Error);
}

TEST(Baseline, WhereNothingCanBeSavedIsToldAtOnce) {
  EXPECT_THROW(BaseFile("/nonexistent/base.json"), Error);
  EXPECT_THROW(BaseFile("/tmp"), Error);
  EXPECT_THROW(BaseFile("/dev/null"), Error);
}

// The output of a run of one row, into a file.
struct OneRun {
  OneRun() {
    options.output = scratch.path;
    options.format = "json";
    options.common.quiet = true;
  }
  Gate gate(const std::vector<Row>& rows, const std::string& reason = "") {
    Output output(options, Facts{});
    for (const Row& row : rows) output.row(row);
    output.end(reason);
    return output.settle_base();
  }
  Scratch scratch;
  Options options;
};

TEST(Output, TheGateIsUndecidedWhenNothingWasCompared) {
  Scratch base;
  BaseFile(base.path).save(Facts{}, {sample_row(1024, 10), sample_row(2048, 20)});
  OneRun run;
  run.options.compare = base.path;
  EXPECT_EQ(run.gate({sample_row(4096)}), Gate::holds);  // only shown
  run.options.fail_if_slower = 0.05;
  EXPECT_EQ(run.gate({sample_row(4096)}), Gate::undecided);
  EXPECT_EQ(run.gate({}), Gate::undecided);
  EXPECT_EQ(run.gate({sample_row(1024, 10), sample_row(4096)}), Gate::holds);
  EXPECT_EQ(run.gate({sample_row(1024, 20)}), Gate::slower);
}

TEST(Output, OnlyACompleteAndRightRunIsSaved) {
  Scratch base;
  BaseFile(base.path).save(Facts{}, {sample_row()});
  const std::string before = base.text();
  OneRun run;
  run.options.save = base.path;
  run.gate({sample_row(2048)}, "interrupted");
  EXPECT_EQ(base.text(), before);
  Row wrong = sample_row(2048);
  wrong.checked = Checked::wrong;
  wrong.wrong = 3;
  run.gate({wrong});
  EXPECT_EQ(base.text(), before);
  run.gate({sample_row(2048)});
  EXPECT_TRUE(Baseline(base.path).has(sample_row(2048)));
  EXPECT_FALSE(std::filesystem::exists(fmt::format("{}.{}", base.path, getpid())));
}

TEST(Output, WrongRowsAreInTheSummaryHoweverItEnds) {
  OneRun run;
  Row wrong = sample_row();
  wrong.wrong = 3;
  {
    Output output(run.options, Facts{});
    output.row(wrong);
    output.row(wrong);
    output.give_up("hang");
    output.end("");  // too late
  }
  const Json json = Json::parse(run.scratch.text());
  EXPECT_EQ(json["end"]["wrong_elements"], 6);
  EXPECT_EQ(json["end"]["reason"], "hang");
  EXPECT_EQ(json["end"]["complete"], false);
}

// A reader that has gone, or a full disk, at the worst moment.
TEST(Output, GivingUpThrowsNothing) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  OneRun run;
  unlink(run.scratch.path.c_str());
  ASSERT_EQ(mkfifo(run.scratch.path.c_str(), 0600), 0);
  UniqueFd reader(open(run.scratch.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Output output(run.options, Facts{});
  Output other(run.options, Facts{});
  reader.reset();
  EXPECT_THROW(output.end(""), Error);
  other.give_up("hang");
}

std::string limits_file(const Scratch& scratch) {
  std::ofstream(scratch.path) << R"({"schema": "hcc-bench-limits", "version": 1,
    "system": {"time": "T", "processor": "P"},
    "distance": {"cores": [0, 1], "least_ns": 30, "most_ns": 40, "state": "near"}, "limits": [
    {"name": "copy", "bytes": 4, "best_us": 1}, {"name": "line", "bytes": null, "best_us": 1},
    {"name": "direct", "bytes": 100, "best_us": 1},
    {"name": "direct", "bytes": 10000, "best_us": 4},
    {"name": "bounce", "bytes": 100, "best_us": null},
    {"name": "tcp_half_round_trip", "bytes": 4, "best_us": 5},
    {"name": "tcp_one_way", "bytes": 1000, "best_us": 1},
    {"name": "tcp_both_ways", "bytes": 1000, "best_us": 4},
    {"name": "tcp_both_ways", "bytes": 1000, "best_us": 2}]})";
  return scratch.path;
}

Row ran(const char* operation, size_t bytes, const char* algorithm) {
  Row row = sample_row(bytes);
  row.series.operation = operation;
  row.series.ranks = 2;
  row.algorithm = algorithm;
  return row;
}

TEST(Peaks, BetweenTheMeasuredSizesAndBeyondThem) {
  Scratch scratch;
  const Peaks peaks(limits_file(scratch));
  EXPECT_NE(peaks.text().find("P, cores near (30 to 40 ns)"), std::string::npos) << peaks.text();
  Facts facts;
  facts.memory = "hcomm";
  for (const auto& [bytes, time_us] :
       std::map<size_t, double>{{4, 1}, {100, 1}, {1000, 2}, {10000, 4}, {100000, 40}}) {
    const auto peak = peaks.busbw(ran("allreduce", bytes, "ring shm"), facts);
    ASSERT_TRUE(peak) << bytes;
    EXPECT_NEAR(*peak * time_us * 1e-6, static_cast<double>(bytes), 1e-6) << bytes;
  }
}

TEST(Peaks, NoneWhereNoLimitIsKnown) {
  Scratch scratch;
  const Peaks peaks(limits_file(scratch));
  Facts facts;
  facts.memory = "plain";
  const Row good = ran("allreduce", 1000, "ring shm");
  EXPECT_FALSE(peaks.busbw(good, facts)) << "bounce is absent from the file";
  facts.memory = "hcomm";
  EXPECT_TRUE(peaks.busbw(good, facts));
  EXPECT_FALSE(peaks.busbw(ran("allgather", 1000, "ring shm"), facts));
  EXPECT_FALSE(peaks.busbw(ran("allreduce", 1000, "ring"), facts));
  EXPECT_FALSE(peaks.busbw(ran("allreduce", 1000, ""), facts));
  Row many = good;
  many.series.ranks = 3;
  EXPECT_FALSE(peaks.busbw(many, facts));
  facts.hosts = 2;
  EXPECT_FALSE(peaks.busbw(good, facts));
}

TEST(Peaks, LoopbackOneWayAndBothWays) {
  Scratch scratch;
  const Peaks peaks(limits_file(scratch));
  const Facts facts;
  const auto peak = [&](const char* operation, size_t bytes) {
    return peaks.busbw(ran(operation, bytes, "x tcp"), facts).value_or(0);
  };
  EXPECT_NEAR(peak("allreduce", 1000000), 5e8, 1);
  EXPECT_NEAR(peak("broadcast", 1000000), 1e9, 1);
  EXPECT_NEAR(peak("gather", 1000000), 1e9, 1);
  EXPECT_NEAR(peak("allreduce", 100), 2e7, 1);  // half a round trip
  EXPECT_NEAR(peak("allgather", 100), 1e7, 1);
}

TEST(Peaks, FilesThatAreNotLimitsAreRefused) {
  Scratch scratch;
  EXPECT_THROW(Peaks("/nonexistent"), Error);
  for (const char* text : {"", "{}", "[1]", R"({"schema": "hcc-bench", "limits": []})",
                           R"({"schema": "hcc-bench-limits", "limits": [{}]})"}) {
    std::ofstream(scratch.path) << text;
    EXPECT_THROW(Peaks{scratch.path}, Error) << text;
  }
}

TEST(Peaks, AreAColumnAndAKey) {
  Row row = sample_row(8 << 20, 1000);
  row.peak = *row.busbw * 2e9;
  EXPECT_NEAR(*peak_share(row), 0.5, 1e-9);
  EXPECT_NEAR(*regimes({row}).peak_share, 0.5, 1e-9);
  Scratch scratch;
  Sink sink(scratch.path);
  const auto writer = make_writer("table", sink, Style{.peaks = true});
  writer->row(row);
  row.peak.reset();
  writer->row(row);
  EXPECT_NE(scratch.text().find(" %peak "), std::string::npos) << scratch.text();
  EXPECT_NE(scratch.text().find("  50.0  ok"), std::string::npos) << scratch.text();
  EXPECT_NE(scratch.text().find("     -  ok"), std::string::npos) << scratch.text();
  EXPECT_TRUE(row_json(row, Style{})["peak_bytes_per_s"].is_null());
}

}  // namespace
}  // namespace hcomm::bench
