// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/json.h"
#include "hcc-bench/compare/child.h"
#include "hcc-bench/operation.h"

namespace hcomm::tune {

namespace {

using cli::Json;
using Words = std::vector<std::string>;

constexpr size_t kLastLines = 4;
constexpr int64_t kSlice_ms = 20;      // how soon a signal is noticed
constexpr int64_t kShort_ms = 60'000;  // of a measurement of links or kernels
// About so many plans meet in a cell, each warmed up for so long; where messages are cut into tiles
// there are heats before.
constexpr int64_t kPlans = 9, kWarmUp_ns = 35'000'000, kHeats_ns = 1'500'000'000;
constexpr size_t kLeastTile = 128 * kKiB;
constexpr int64_t kLeastPlan_ns = 2'000'000, kMostPlan_ns = 200'000'000;
constexpr size_t kSmall = 8, kLarge = 256 * kKiB;

Words under_launcher(const Programs& programs, uint32_t ranks, const Words& rest) {
  Words words = {programs.launch, "-n", std::to_string(ranks), "--label", "none", programs.bench};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

// Each line that is a document; the rest is for people.
std::vector<Json> documents(const std::string& output) {
  std::vector<Json> list;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) list.push_back(std::move(json));
  }
  return list;
}

// With what hcc-bench says of it, else the last lines that there are.
[[noreturn]] void fail_as(const Words& words, int code, const std::string& output) {
  std::string said;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("hcc-bench: ")) said += line + "\n";
  fail(Code::unavailable, "{}: exit code {}: {}", fmt::join(words, " "), code,
       compare::last_lines(said.empty() ? output : said, kLastLines));
}

// The least time of a row of hcc-bench: what else the machine does is not the link's.
double least_us(const std::vector<Json>& rows, size_t bytes) {
  for (const Json& row : rows)
    if (row.value("bytes", Json()) == bytes && row.value("min_us", Json()).is_number())
      return row["min_us"];
  return 0;
}

std::string collective_of(const std::string& operation) {
  return std::string(bench::info(bench::parse_operations(operation).at(0)).call);
}

Cell cell_of(const Json& json, const std::string& transport) {
  Cell cell{.collective = collective_of(json.at("operation")),
            .transport = transport,
            .ranks = json.at("ranks"),
            .bytes = json.at("bytes")};
  const Json& plans = json.at("plans");
  for (const Json& plan : plans)
    if (plan.at("wrong_elements") != 0)
      fail(Code::internal, "{} {} by {}: {} wrong elements", cell.collective, size_text(cell.bytes),
           plan.at("plan").get<std::string>(), plan.at("wrong_elements").get<uint64_t>());
  cell.choice = plans.at(0).at("plan");
  if (json.at("ratio").is_number()) cell.ratio = json.at("ratio");
  if (json.at("verdict") != "worse") return cell;
  for (const Json& plan : plans)
    if (plan.at("forced") == json.at("best")) cell.actions = plan.at("actions");
  return cell;
}

}  // namespace

Programs find_programs() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = [&](const char* name) {
    const std::string path = self.parent_path() / name;
    if (access(path.c_str(), X_OK) != 0)
      fail(Code::unavailable, "{} is not there: hcc tune runs the {} that is installed beside it",
           path, name);
    return path;
  };
  return {beside("hcc-launch"), beside("hcc-bench")};
}

std::vector<Job> jobs_of(const Wanted& wanted) {
  std::vector<Job> jobs;
  for (const std::string& transport : wanted.transports)
    for (const uint32_t ranks : wanted.ranks)
      for (const std::string& operation : wanted.operations)
        jobs.push_back({transport, operation, ranks});
  return jobs;
}

int64_t time_of_plan_ns(const Wanted& wanted) {
  const auto plans = static_cast<int64_t>(wanted.sizes.size()) * kPlans;
  const auto tiled = std::count_if(wanted.sizes.begin(), wanted.sizes.end(),
                                   [](size_t bytes) { return bytes > kLeastTile; });
  const int64_t job_ns = wanted.time_ns / static_cast<int64_t>(jobs_of(wanted).size());
  return std::clamp((job_ns - plans * kWarmUp_ns - tiled * kHeats_ns) / plans, kLeastPlan_ns,
                    kMostPlan_ns);
}

Words command_of(const Programs& programs, const Wanted& wanted, const Job& job) {
  return under_launcher(
      programs, job.ranks,
      {job.operation, "--sizes", fmt::format("{}", fmt::join(wanted.sizes, ",")), "--sweep", "plan",
       "--ndjson", "--min-time", fmt::format("{}us", time_of_plan_ns(wanted) / 1000)});
}

Session::Ran Session::run(const Words& words, const std::string& transport, Deadline deadline) {
  compare::Launch launch{words, {}};
  // A choice that nothing outranks: that is what the rules are to be about.
  for (const char* name : {"HCOMM_ALGO=", "HCOMM_TILE=", "HCOMM_WINDOW=", "HCOMM_DETERMINISTIC="})
    launch.environment.emplace_back(name);
  launch.environment.emplace_back("HCOMM_POLICY=/dev/null");
  launch.environment.push_back("HCOMM_TRANSPORT=" + transport);
  compare::Child child(launch);
  while (child.running() && !deadline.passed()) {
    if (stop_.load() != 0) fail(Code::aborted, "stopped");
    usleep(kSlice_ms * 1000);
  }
  Ran ran;
  ran.in_time = !child.running();
  child.end(0);
  ran.code = child.code();
  ran.output = child.output();
  return ran;
}

std::string Session::run_short(const Words& words, const std::string& transport) {
  Ran ran = run(words, transport, Deadline::after_ms(kShort_ms));
  if (!ran.in_time)
    fail(Code::timeout, "{}: no result in {} s", fmt::join(words, " "), kShort_ms / 1000);
  if (ran.code != 0) fail_as(words, ran.code, ran.output);
  return std::move(ran.output);
}

Link Session::link(const std::string& transport) {
  const Words words = under_launcher(
      programs_, 2, {"pingpong", "--sizes", fmt::format("{},{}", kSmall, kLarge), "--ndjson"});
  const std::string output = run_short(words, transport);
  const std::vector<Json> rows = documents(output);
  const double small_us = least_us(rows, kSmall), large_us = least_us(rows, kLarge);
  if (small_us <= 0 || large_us <= 0) fail_as(words, 0, output);
  return {transport, small_us, std::max(large_us - small_us, 0.0) / static_cast<double>(kLarge)};
}

Work Session::work() {
  const Words words = {programs_.bench, "limits", "--sections", "memory",
                       "--min-time",    "10ms",   "--json"};
  const std::string output = run_short(words, "");
  const size_t begin = std::min(output.find('{'), output.size());
  const Json json = Json::parse(output.substr(begin), nullptr, false);
  if (!json.is_object()) fail_as(words, 0, output);
  Work work;
  for (const Json& limit : json.at("limits")) {
    if (limit.at("bytes") != kLarge || !limit.at("best_us").is_number()) continue;
    const double us_per_byte = limit.at("best_us").get<double>() / static_cast<double>(kLarge);
    if (limit.at("name") == "copy") work.copy_us_per_byte = us_per_byte;
    if (limit.at("name") == "sum") work.reduce_us_per_byte = us_per_byte;
  }
  return work;
}

Session::Cells Session::measure(const Wanted& wanted, const Job& job, Deadline deadline) {
  const Words words = command_of(programs_, wanted, job);
  const Ran ran = run(words, job.transport, deadline);
  // 1: it found the choice worse somewhere, which is what it was asked for.
  if (ran.in_time && ran.code != 0 && ran.code != 1) fail_as(words, ran.code, ran.output);
  return {parse_cells(ran.output, job.transport), ran.in_time};
}

// Of some hundred cells a few look as if the choice were worse by chance: they are measured again.
Session::Cells Session::cells(const Wanted& wanted, const Job& job, Deadline deadline) {
  Cells first = measure(wanted, job, deadline);
  Wanted doubtful = wanted;
  doubtful.sizes.clear();
  for (const Cell& cell : first.list)
    if (!cell.actions.empty()) doubtful.sizes.push_back(cell.bytes);
  if (doubtful.sizes.empty()) return first;
  Cells second;
  if (!deadline.passed()) second = measure(doubtful, job, deadline);
  return {confirmed(std::move(first.list), second.list), first.complete && second.complete};
}

std::vector<Cell> confirmed(std::vector<Cell> first, std::span<const Cell> second) {
  for (Cell& cell : first) {
    if (cell.actions.empty()) continue;
    const auto again = std::find_if(second.begin(), second.end(),
                                    [&](const Cell& other) { return other.bytes == cell.bytes; });
    if (again != second.end())
      cell = *again;
    else
      cell.actions.clear();
  }
  return first;
}

std::vector<Cell> parse_cells(const std::string& output, const std::string& transport) {
  std::vector<Cell> cells;
  for (const Json& json : documents(output))
    if (json.contains("plans")) cells.push_back(cell_of(json, transport));
  return cells;
}

}  // namespace hcomm::tune
