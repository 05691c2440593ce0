// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/fragment.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "base/bytes.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace hcomm::tune {

namespace {

using cli::Json;

constexpr int kSchemaVersion = 1;

std::string rate_text(double us_per_byte) {
  return us_per_byte > 0 ? cli::number_text(1e-3 / us_per_byte) : "-";
}

std::string as_comment(const std::string& text) {
  return "# " + cli::printable(text) + "\n";
}

// "all_reduce, 2 ranks, shm".
std::string series_text(const Cell& cell) {
  return fmt::format("{}, {} rank{}, {}", cell.collective, cell.ranks, cell.ranks == 1 ? "" : "s",
                     cell.transport);
}

std::string rule_text(const Rule& rule) {
  std::string sizes;
  if (rule.first.bytes > 0) sizes = size_text(rule.first.bytes);
  if (rule.last != rule.first.bytes) sizes += " to " + size_text(rule.last);
  std::string ratios = fmt::format("{:.2f}", rule.least_ratio);
  if (rule.most_ratio > rule.least_ratio) ratios += fmt::format(" to {:.2f}", rule.most_ratio);
  return as_comment(fmt::format("{}{}: the model's choice ({}) takes {} times as long",
                                series_text(rule.first), sizes.empty() ? "" : ", " + sizes,
                                rule.first.choice, ratios)) +
         rule.text() + "\n";
}

// Of each series in which some cell has no rule.
std::string standing_text(std::span<const Cell> cells) {
  std::vector<std::string> order;
  std::map<std::string, std::pair<size_t, size_t>> count;  // that stand, of all
  for (const Cell& cell : cells) {
    const std::string series = series_text(cell);
    if (!count.contains(series)) order.push_back(series);
    auto& [stand, all] = count[series];
    all++;
    if (cell.actions.empty()) stand++;
  }
  std::string text;
  for (const std::string& series : order)
    if (const auto [stand, all] = count[series]; stand > 0)
      text += as_comment(fmt::format("{}: the model's choice stands in {} of {} size{}", series,
                                     stand, all, all == 1 ? "" : "s"));
  return text;
}

}  // namespace

std::string machine_text(const Measured& measured) {
  cli::Table table({{"what"},
                    {"latency us (alpha)", cli::Align::right},
                    {"ns/byte (beta, gamma)", cli::Align::right},
                    {"GB/s", cli::Align::right}});
  const auto add = [&](const std::string& what, const std::string& latency, double us_per_byte) {
    table.add({what, latency, cli::number_text(us_per_byte * 1e3), rate_text(us_per_byte)});
  };
  for (const Link& link : measured.links)
    add("link " + link.transport, cli::number_text(link.latency_us), link.us_per_byte);
  add("copy", "-", measured.work.copy_us_per_byte);
  add("reduce float32", "-", measured.work.reduce_us_per_byte);
  return table.text();
}

std::string fragment(const Measured& measured, const Origin& origin) {
  std::string text =
      as_comment(fmt::format("Rules for the choice of algorithms, measured by {} "
                             "on {}, {}.",
                             origin.tool, origin.host, origin.time));
  text += as_comment("Append it to /etc/hcomm/policy.conf, or name it in HCOMM_POLICY.");
  text += "#\n";
  std::istringstream machine(machine_text(measured));
  for (std::string line; std::getline(machine, line);) text += as_comment(line);
  text += "#\n";
  if (!measured.left_out.empty()) text += as_comment("Not complete: " + measured.left_out + ".");
  text += standing_text(measured.cells);
  text += "\n[tuning]\n";
  for (const Rule& rule : rules_of(measured.cells)) text += rule_text(rule);
  return text;
}

Json document_json(const Measured& measured, const Origin& origin) {
  Json json = cli::document("hcc-tune", kSchemaVersion);
  json["tool"] = origin.tool;
  json["host"] = origin.host;
  json["time"] = origin.time;
  json["complete"] = measured.left_out.empty();
  json["reason"] = cli::or_null(measured.left_out);
  json["links"] = Json::array();
  for (const Link& link : measured.links)
    json["links"].push_back({{"transport", link.transport},
                             {"latency_us", link.latency_us},
                             {"us_per_byte", link.us_per_byte}});
  json["copy_us_per_byte"] = measured.work.copy_us_per_byte;
  json["reduce_us_per_byte"] = measured.work.reduce_us_per_byte;
  json["cells"] = Json::array();
  for (const Cell& cell : measured.cells)
    json["cells"].push_back({{"collective", cell.collective},
                             {"transport", cell.transport},
                             {"ranks", cell.ranks},
                             {"bytes", cell.bytes},
                             {"choice", cell.choice},
                             {"ratio", cell.ratio},
                             {"actions", cli::or_null(cell.actions)}});
  json["rules"] = Json::array();
  for (const Rule& rule : rules_of(measured.cells)) json["rules"].push_back(rule.text());
  return json;
}

}  // namespace hcomm::tune
