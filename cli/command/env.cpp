// SPDX-License-Identifier: Apache-2.0
// hcc env: the settings of the library, their values, and where each comes from.
#include <fmt/format.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"

namespace hcomm::cli {

namespace {

struct Entry {
  const Setting* setting;
  std::string value, fault;  // fault: why the value cannot be used
  bool from_environment;
};

// A shell pattern, or a part of the name, in any case.
bool matches(std::string_view name, const std::string& pattern) {
  const bool glob = pattern.find_first_of("*?[") != std::string::npos;
  const std::string whole = glob ? pattern : "*" + pattern + "*";
  return fnmatch(whole.c_str(), std::string(name).c_str(), FNM_CASEFOLD) == 0;
}

Entry entry_of(const Setting& setting) {
  const std::string_view value = environment_value(setting.name);
  Entry entry{&setting, std::string(value), "", !value.empty()};
  if (value.empty()) {
    entry.value = setting.default_value;
    return entry;
  }
  try {
    Config scratch;
    setting.set(scratch, value);
  } catch (const Error& error) {
    entry.fault = fmt::format("{}; expected: {}", error.text(), setting.values);
  }
  if (setting.kind == Setting::Kind::secret) entry.value = "(not shown)";
  return entry;
}

class Env : public Command {
 public:
  std::string_view name() const override { return "env"; }
  std::string_view summary() const override {
    return "settings (HCOMM_*), their values, and where each comes from";
  }

  void describe(CLI::App& app) override {
    set_page(app, {.usage = "hcc env [PATTERN] [--changed] [--json]",
                   .examples = {{"hcc env timeout", ""}, {"hcc env 'HCOMM_S*' --json", ""}},
                   .exits = "0 done; 1 a value cannot be read, or a HCOMM_* is unknown; 2 usage"});
    add_value(app, {"pattern", "PATTERN", "part of a name, or a shell pattern"},
              [this](const std::string& text) { pattern_ = text; });
    add_switch(app, {"--changed", "", "only what is set"}, changed_);
    add_switch(app, {"--json", "", "as JSON"}, json_);
  }

  int run() override {
    std::vector<Entry> entries;
    bool sound = true;
    for (const Setting& setting : settings()) {
      if (!pattern_.empty() && !matches(setting.name, pattern_)) continue;
      const Entry entry = entry_of(setting);
      if (!entry.fault.empty()) sound = false;
      if (!changed_ || entry.from_environment) entries.push_back(entry);
    }
    const std::vector<std::string> unknown = unknown_settings(process_environment());
    if (json_)
      print_json(entries, unknown);
    else
      print_text(entries);
    for (const Entry& entry : entries)
      if (!entry.fault.empty())
        complain(fmt::format("hcc: {}: {}", entry.setting->name, entry.fault));
    for (const std::string& line : unknown) complain("hcc: " + line);
    return sound && unknown.empty() ? kDone : kProblem;
  }

 private:
  static void print_text(const std::vector<Entry>& entries) {
    Table table({{"name"}, {"value"}, {"from"}, {"values"}, {"meaning"}});
    for (const Entry& entry : entries)
      table.add({std::string(entry.setting->name),
                 entry.value.empty() ? "-" : printable(entry.value),
                 entry.from_environment ? "environment" : "default",
                 std::string(entry.setting->values), std::string(entry.setting->doc)});
    fmt::print("{}", table.text());
  }

  static void print_json(const std::vector<Entry>& entries,
                         const std::vector<std::string>& unknown) {
    Json json = document("hcc-env", 1);
    json["settings"] = Json::array();
    for (const Entry& entry : entries)
      json["settings"].push_back(
          {{"name", entry.setting->name},
           {"value", entry.value.empty() ? Json(nullptr) : Json(entry.value)},
           {"from", entry.from_environment ? "environment" : "default"},
           {"default", entry.setting->default_value},
           {"values", entry.setting->values},
           {"meaning", entry.setting->doc},
           {"fault", entry.fault.empty() ? Json(nullptr) : Json(entry.fault)}});
    json["unknown"] = unknown;
    fmt::print("{}", json_pretty(json));
  }

  std::string pattern_;
  bool changed_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_env() {
  return std::make_unique<Env>();
}

}  // namespace hcomm::cli
