// SPDX-License-Identifier: Apache-2.0
#include "microbench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "cli/table.h"
#include "cli/text.h"
#include "hcc-bench/measure/statistics.h"

namespace hcomm::microbench {

namespace {

using cli::Json;

constexpr std::string_view kSchema = "hcomm-microbench";
// Of hundreds of cases none may seem to have changed by chance alone; seven repetitions can tell.
constexpr double kChance = 0.002;

double ns_of(const std::string& unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit == "s") return 1e9;
  fail(Code::invalid_argument, "unknown unit of time '{}'", unit);
}

bool by_real_time(const std::string& name) {
  for (const char* mark : {"/real_time", "/manual_time", "/threads:"})
    if (name.find(mark) != std::string::npos) return true;
  return false;
}

double least(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

bool beyond(double ratio, double bound) {
  return ratio > 1 + bound || ratio < 1 / (1 + bound);
}

}  // namespace

Json bundle(std::span<const std::string> texts) {
  Json all = cli::document(kSchema, 1);
  all["runs"] = Json::array();
  for (const std::string& text : texts) {
    Json run = Json::parse(text, nullptr, false);
    if (run.is_discarded() || !run.is_object() || !run.contains("benchmarks"))
      fail(Code::invalid_argument, "this is no JSON of Google Benchmark: {}", text.substr(0, 60));
    all["runs"].push_back(std::move(run));
  }
  return all;
}

Times times_of(const Json& bundle) {
  Times times;
  try {
    if (bundle.at("schema") != kSchema)
      fail(Code::invalid_argument, "this was not written by etc/microbench.sh --save");
    for (const Json& run : bundle.at("runs"))
      for (const Json& each : run.at("benchmarks")) {
        const bool measured = each.value("run_type", "iteration") == "iteration";
        if (!measured || each.value("error_occurred", false)) continue;
        const auto name = each.at("name").get<std::string>();
        const double time = each.at(by_real_time(name) ? "real_time" : "cpu_time").get<double>();
        times[name].push_back(time * ns_of(each.at("time_unit").get<std::string>()));
      }
  } catch (const Json::exception& error) {
    fail(Code::invalid_argument, "this was not written by etc/microbench.sh --save: {}",
         error.what());
  }
  return times;
}

Times read_times(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(Code::invalid_argument, "cannot read {}", path);
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) fail(Code::invalid_argument, "{} is no JSON", path);
  return times_of(json);
}

Comparison compare(const Times& base, const Times& now, double bound) {
  Comparison result;
  for (const auto& [name, times] : now) {
    const auto found = base.find(name);
    if (found == base.end()) {
      result.added++;
      continue;
    }
    result.compared++;
    const double before_ns = bench::statistics(found->second).median,
                 now_ns = bench::statistics(times).median;
    const double ratio = now_ns / before_ns, of_least = least(times) / least(found->second);
    if (!beyond(ratio, bound) || !beyond(of_least, bound) || (ratio > 1) != (of_least > 1))
      continue;
    const double chance = ratio > 1 ? bench::probability_not_slower(found->second, times)
                                    : bench::probability_not_slower(times, found->second);
    if (chance > kChance) continue;
    result.changes.push_back({name, before_ns, now_ns, ratio, chance});
    result.slower += ratio > 1 ? 1 : 0;
  }
  result.gone = base.size() - result.compared;
  return result;
}

std::string text_of(const Comparison& comparison, double bound) {
  cli::Table table({{"case"},
                    {"base ns", cli::Align::right},
                    {"now ns", cli::Align::right},
                    {"change", cli::Align::right},
                    {"chance", cli::Align::right}});
  for (const Change& each : comparison.changes)
    table.add({each.name, cli::number_text(each.base_ns), cli::number_text(each.now_ns),
               fmt::format("{:+.1f} %", (each.ratio - 1) * 100),
               fmt::format("{:.4f}", each.probability)});
  std::string text = table.empty() ? "" : table.text();
  text +=
      fmt::format("{} of {} cases slower by more than {:g} %, {} faster", comparison.slower,
                  comparison.compared, bound * 100, comparison.changes.size() - comparison.slower);
  if (comparison.added > 0) text += fmt::format(", {} not in the base", comparison.added);
  if (comparison.gone > 0) text += fmt::format(", {} of it not run", comparison.gone);
  return text + "\n";
}

}  // namespace hcomm::microbench
