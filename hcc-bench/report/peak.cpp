// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/report/peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "hcc-bench/operation.h"

namespace hcomm::bench {

namespace {

using cli::Json;

constexpr std::string_view kSchema = "hcc-bench-limits";

// A straight line between the logarithms; beyond the ends the time of the smallest size and the
// rate of the largest.
double time_at(const std::map<double, double>& curve, double bytes) {
  const auto above = curve.lower_bound(bytes);
  if (above == curve.end()) return curve.rbegin()->second * bytes / curve.rbegin()->first;
  if (above == curve.begin()) return above->second;
  const auto below = std::prev(above);
  const double part = std::log(bytes / below->first) / std::log(above->first / below->first);
  return below->second * std::pow(above->second / below->second, part);
}

// "direct_scatter tile=1MiB shm" -> "shm"
std::string transport_of(const Row& row) {
  return row.algorithm.substr(row.algorithm.rfind(' ') + 1);
}

const OperationInfo* info_named(const std::string& name) {
  for (const OperationInfo& each : operations())
    if (each.name == name) return &each;
  return nullptr;
}

std::string distance_text(const Json& distance) {
  if (distance.is_null()) return "";
  return fmt::format(", cores {} ({:.0f} to {:.0f} ns)", distance.at("state").get<std::string>(),
                     distance.at("least_ns").get<double>(), distance.at("most_ns").get<double>());
}

}  // namespace

Peaks::Peaks(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(Code::invalid_argument, "--peak: cannot read {}", path);
  try {
    const Json json = Json::parse(file);
    if (json.at("schema") != kSchema)
      fail(Code::invalid_argument, "--peak: {} was not written by hcc-bench limits --json", path);
    for (const Json& limit : json.at("limits")) {
      if (limit.at("best_us").is_null() || limit.at("bytes").is_null()) continue;
      const auto name = limit.at("name").get<std::string>();
      const double best_s = limit.at("best_us").get<double>() * 1e-6;
      const auto bytes = limit.at("bytes").get<double>();
      const double rate = bytes / best_s;
      if (name == "direct") direct_[bytes] = best_s;
      if (name == "bounce") bounce_[bytes] = best_s;
      if (name == "tcp_one_way") one_way_ = std::max(one_way_.value_or(0), rate);
      if (name == "tcp_both_ways") both_ways_ = std::max(both_ways_.value_or(0), rate);
      if (name == "tcp_half_round_trip")
        half_round_trip_s_ = std::min(half_round_trip_s_.value_or(best_s), best_s);
    }
    text_ = fmt::format("{} of {}, {}{}", path, json.at("system").at("time").get<std::string>(),
                        json.at("system").at("processor").get<std::string>(),
                        distance_text(json.at("distance")));
    text_ = cli::printable(text_);
  } catch (const Json::exception& error) {
    fail(Code::invalid_argument, "--peak: {} was not written by hcc-bench limits --json: {}", path,
         error.what());
  }
}

std::optional<double> Peaks::busbw(const Row& row, const Facts& facts) const {
  if (facts.hosts != 1 || row.series.ranks != 2 || row.bytes == 0) return std::nullopt;
  const std::string transport = transport_of(row);
  if (transport == "shm") return shared_memory(row, facts);
  return transport == "tcp" ? loopback(row) : std::nullopt;
}

std::optional<double> Peaks::shared_memory(const Row& row, const Facts& facts) const {
  const Curve& curve = facts.memory == "hcomm" ? direct_ : bounce_;
  if (row.series.operation != info(Operation::all_reduce).name || curve.empty())
    return std::nullopt;
  const auto bytes = static_cast<double>(row.bytes);
  return bytes / time_at(curve, bytes) * bus_factor(Operation::all_reduce, row.series.ranks);
}

std::optional<double> Peaks::loopback(const Row& row) const {
  const OperationInfo* const operation = info_named(row.series.operation);
  if (operation == nullptr || !row.busbw) return std::nullopt;
  const bool one_way = operation->rooted() || operation->operation == Operation::ping_pong;
  const std::optional<double>& rate = one_way ? one_way_ : both_ways_;
  if (!rate || !half_round_trip_s_) return std::nullopt;
  const double passed =
      static_cast<double>(row.bytes) * bus_factor(operation->operation, row.series.ranks);
  return std::min(*rate, passed / *half_round_trip_s_);
}

}  // namespace hcomm::bench
