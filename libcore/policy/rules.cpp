// SPDX-License-Identifier: Apache-2.0
#include "policy/rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "algorithm/algorithm.h"
#include "base/bytes.h"
#include "base/error.h"
#include "datatype/types.h"

namespace hcomm::policy {
namespace {

using schedule::Collective;

constexpr size_t kFileBytes = 1 << 20, kLineBytes = 4096, kShownBytes = 60;

constexpr std::string_view kSections[] = {"path_rule", "fallback", "tuning"};
constexpr std::string_view kConditions[] = {"collective", "ranks",    "size", "dtype",
                                            "link",       "vendor",   "src",  "dst",
                                            "scope",      "sparsity", "node"};
constexpr size_t kOfferedConditions = 5;
constexpr std::string_view kActions[] = {
    "algorithm", "tile",        "window",    "priority",   "enable_nvlink", "transport",
    "lanes",     "compression", "threshold", "redundancy", "integrity"};
constexpr size_t kOfferedActions = 4;
constexpr uint32_t kMostWindow = 7;

// What the file holds, safe to print: control bytes as '?', the rest cut.
std::string shown(std::string_view text) {
  std::string safe(text.substr(0, kShownBytes));
  for (char& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return safe + (text.size() > kShownBytes ? "..." : "");
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return text.substr(text.size());  // keeps the place
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> fields(std::string_view text) {
  std::vector<std::string_view> found;
  while (true) {
    const size_t comma = text.find(',');
    found.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return found;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> algorithms_of(std::optional<Collective> collective) {
  std::vector<std::string_view> names;
  for (const algorithm::Algorithm& each : algorithm::all())
    if ((!collective || each.collective == *collective) &&
        std::find(names.begin(), names.end(), each.name) == names.end())
      names.push_back(each.name);
  return names;
}

// "'rign'; there are: ring tree; did you mean ring?"
std::string choices(std::string_view seen, std::span<const std::string_view> known) {
  const std::string near = nearest(seen, known.data(), known.size());
  return fmt::format("'{}'; there are: {}{}{}{}", shown(seen), fmt::join(known, " "),
                     near.empty() ? "" : "; did you mean ", near, near.empty() ? "" : "?");
}

bool exists(std::optional<Collective> collective, std::string_view name) {
  for (const algorithm::Algorithm& each : algorithm::all())
    if (each.name == name && (!collective || each.collective == *collective)) return true;
  return false;
}

std::array<std::string_view, schedule::kCollectives> collective_names() {
  std::array<std::string_view, schedule::kCollectives> names;
  for (size_t i = 0; i < names.size(); i++) names[i] = name(static_cast<Collective>(i));
  return names;
}

// One line of the file; all views are into it, so that a fault can tell its column.
class Line {
 public:
  Line(std::string_view file, uint32_t number, std::string_view text)
      : file_(file), number_(number), text_(text) {}

  // `said` is what remains of the line without comment and outer blanks.
  std::string_view section(std::string_view said) const;
  Rule rule(std::string_view section, std::string_view said) const;
  template <typename... Args>
  [[noreturn]] void refuse(std::string_view at, fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail(Code::invalid_argument, "{}:{}:{}: {}", file_, number_, at.data() - text_.data() + 1,
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct Field {
    std::string_view key, value;
    Comparison comparison;
  };
  Field split(std::string_view field, std::string_view what) const;
  Condition condition(std::string_view field) const;
  void act(std::string_view field, Rule& rule) const;
  void check_algorithm(const Rule& rule, std::string_view said) const;
  uint64_t size(std::string_view value) const;
  template <typename Number>
  Number number(std::string_view value, std::string_view what) const;
  Collective collective(std::string_view value) const;

  std::string_view file_;
  uint32_t number_;
  std::string_view text_;
};

std::string_view Line::section(std::string_view said) const {
  const std::string_view name =
      said.back() == ']' ? trimmed(said.substr(1, said.size() - 2)) : std::string_view();
  if (std::find(std::begin(kSections), std::end(kSections), name) == std::end(kSections))
    refuse(said, "unknown section {}", choices(said, kSections));
  return name;
}

Rule Line::rule(std::string_view section, std::string_view said) const {
  constexpr std::string_view kMatch = "match";
  if (section.empty())
    refuse(said, "'{}' stands before any section; begin with [path_rule] or [tuning]", shown(said));
  if (section == "fallback") refuse(said, "rules of [fallback] are not offered in this version");
  std::string_view rest = said;
  if (rest.starts_with(kMatch) && rest.substr(kMatch.size()).find_first_of(" \t") == 0)
    rest = trimmed(rest.substr(kMatch.size()));
  else if (section == "path_rule")
    refuse(said, "'{}': a rule reads 'match COND, ... -> ACTION, ...'", shown(said));
  const size_t arrow = rest.find("->");
  if (arrow == std::string_view::npos)
    refuse(rest, "'{}' has no '->' between conditions and actions", shown(rest));
  Rule rule{.line = number_, .text = std::string(said)};
  for (const std::string_view field : fields(rest.substr(0, arrow)))
    rule.conditions.push_back(condition(field));
  for (const std::string_view field : fields(rest.substr(arrow + 2))) act(field, rule);
  check_algorithm(rule, said);
  return rule;
}

void Line::check_algorithm(const Rule& rule, std::string_view said) const {
  if (rule.algorithm.empty()) return;
  for (const Condition& condition : rule.conditions) {
    if (condition.subject != Subject::collective || condition.comparison != Comparison::equal)
      continue;
    const auto collective = static_cast<Collective>(condition.number);
    if (!exists(collective, rule.algorithm))
      refuse(said, "{} has no algorithm {}", name(collective),
             choices(rule.algorithm, algorithms_of(collective)));
  }
}

Line::Field Line::split(std::string_view field, std::string_view what) const {
  static constexpr struct {
    std::string_view text;
    Comparison comparison;
  } kSigns[] = {{"!=", Comparison::unequal},  {"<=", Comparison::at_most},
                {">=", Comparison::at_least}, {"=", Comparison::equal},
                {"<", Comparison::less},      {">", Comparison::greater}};
  if (field.empty()) refuse(field, "an empty {}", what);
  const size_t end = field.find_first_of("=<>!");
  for (const auto& sign : kSigns) {
    if (end == std::string_view::npos || !field.substr(end).starts_with(sign.text)) continue;
    const std::string_view value = trimmed(field.substr(end + sign.text.size()));
    const std::string_view key = trimmed(field.substr(0, end));
    if (value.empty()) refuse(field, "'{}' has no value", shown(field));
    return {key, value, sign.comparison};
  }
  refuse(field, "'{}' is no {}: it compares nothing", shown(field), what);
}

Condition Line::condition(std::string_view text) const {
  const Field field = split(text, "condition");
  const auto* known = std::find(std::begin(kConditions), std::end(kConditions), field.key);
  if (known == std::end(kConditions))
    refuse(text, "unknown condition {}", choices(field.key, kConditions));
  const auto index = static_cast<size_t>(known - std::begin(kConditions));
  if (index >= kOfferedConditions)
    refuse(text, "the condition {} is not offered in this version", field.key);
  Condition condition{static_cast<Subject>(index), field.comparison, 0};
  const bool counted = condition.subject == Subject::ranks || condition.subject == Subject::size;
  if (!counted && field.comparison > Comparison::unequal)
    refuse(text, "'{}': {} is compared by = and != only", shown(text), field.key);
  switch (condition.subject) {
    case Subject::collective:
      condition.number = static_cast<uint64_t>(collective(field.value));
      break;
    case Subject::ranks:
      condition.number = number<uint32_t>(field.value, "number of ranks");
      break;
    case Subject::size:
      condition.number = size(field.value);
      break;
    case Subject::dtype: {
      const std::optional<Type> type = type_named(field.value);
      if (!type) refuse(field.value, "unknown type '{}'", shown(field.value));
      condition.number = static_cast<uint64_t>(*type);
      break;
    }
    case Subject::link: {
      const auto* const link = std::find(std::begin(kLinks), std::end(kLinks), field.value);
      if (link == std::end(kLinks))
        refuse(field.value, "unknown link {}", choices(field.value, kLinks));
      condition.number = static_cast<uint64_t>(link - std::begin(kLinks));
    }
  }
  return condition;
}

void Line::act(std::string_view text, Rule& rule) const {
  const Field field = split(text, "action");
  const auto* known = std::find(std::begin(kActions), std::end(kActions), field.key);
  if (known == std::end(kActions)) refuse(text, "unknown action {}", choices(field.key, kActions));
  if (known - std::begin(kActions) >= static_cast<ptrdiff_t>(kOfferedActions))
    refuse(text, "the action {} is not offered in this version", field.key);
  if (field.comparison != Comparison::equal)
    refuse(text, "'{}': an action is set by =", shown(text));
  if (field.key == "tile") {
    rule.tile_bytes = field.value == "whole" ? kWhole : size(field.value);
    if (rule.tile_bytes == 0) refuse(field.value, "a tile of no bytes");
  } else if (field.key == "window") {
    rule.window = number<uint32_t>(field.value, "number of tiles");
    if (rule.window == 0 || rule.window > kMostWindow)
      refuse(field.value, "{} is not within 1 to {}", rule.window, kMostWindow);
  } else if (field.key == "priority") {
    rule.priority = number<int64_t>(field.value, "priority");
  } else {
    if (!exists({}, field.value))
      refuse(field.value, "unknown algorithm {}", choices(field.value, algorithms_of({})));
    rule.algorithm = field.value;
  }
}

uint64_t Line::size(std::string_view value) const {
  try {
    return parse_size(value);
  } catch (const Error& error) {
    refuse(value, "{}", shown(error.text()));
  }
}

template <typename Number>
Number Line::number(std::string_view value, std::string_view what) const {
  Number result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size())
    refuse(value, "'{}' is no {}", shown(value), what);
  return result;
}

Collective Line::collective(std::string_view value) const {
  const std::optional<Collective> named = collective_named(value);
  if (named) return *named;
  refuse(value, "unknown collective {}", choices(value, collective_names()));
}

// A '#' begins a comment at the start of a line or after white space.
std::string_view without_comment(std::string_view line) {
  for (size_t i = 0; i < line.size(); i++)
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return line.substr(0, i);
  return line;
}

}  // namespace

std::optional<Collective> collective_named(std::string_view text) {
  const auto plain = [](std::string_view from) {
    std::string bare(from);
    std::erase_if(bare, [](char c) { return c == '_' || c == '-'; });
    return bare;
  };
  for (int i = 0; i < schedule::kCollectives; i++) {
    const auto collective = static_cast<Collective>(i);
    if (plain(name(collective)) == plain(text)) return collective;
  }
  return std::nullopt;
}

std::vector<Wish> parse_wishes(std::string_view text) {
  std::vector<Wish> wishes;
  if (trimmed(text).empty()) return wishes;
  for (const std::string_view field : fields(text)) {
    Wish wish;
    const size_t sign = field.find('=');
    const std::string_view key =
        trimmed(field.substr(0, sign == std::string_view::npos ? 0 : sign));
    if (sign != std::string_view::npos && !(wish.collective = collective_named(key)))
      fail(Code::invalid_argument, "HCOMM_ALGO '{}': unknown collective {}", shown(text),
           choices(key, collective_names()));
    wish.algorithm = trimmed(sign == std::string_view::npos ? field : field.substr(sign + 1));
    if (!exists(wish.collective, wish.algorithm))
      fail(Code::invalid_argument, "HCOMM_ALGO '{}': {} has no algorithm {}", shown(text),
           wish.collective ? name(*wish.collective) : "a collective",
           choices(wish.algorithm, algorithms_of(wish.collective)));
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

Rules parse_rules(std::string_view text, std::string_view file) {
  Rules rules{.file = std::string(file)};
  if (text.size() > kFileBytes)
    fail(Code::invalid_argument, "{}: {} bytes; a policy file has at most {}", file, text.size(),
         kFileBytes);
  std::string_view section;
  for (uint32_t number = 1; !text.empty(); number++) {
    const size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const Line line(file, number, whole);
    if (whole.size() > kLineBytes)
      line.refuse(whole, "a line of {} bytes; at most {}", whole.size(), kLineBytes);
    for (const char& c : whole)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r')
        line.refuse(std::string_view(&c, 1), "a control byte {:#04x}", static_cast<unsigned>(c));
    const std::string_view said = trimmed(without_comment(whole));
    if (said.empty()) continue;
    if (said.front() == '[')
      section = line.section(said);
    else
      rules.rules.push_back(line.rule(section, said));
  }
  return rules;
}

Rules load_rules(const std::string& path) {
  const std::string from = path.empty() ? "/etc/hcomm/policy.conf" : path;
  std::ifstream file(from, std::ios::binary);
  if (!file) {
    if (path.empty()) return {};
    fail(Code::invalid_argument, "read policy file {}: {}", from, std::strerror(errno));
  }
  std::string text(kFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad())
    fail(Code::invalid_argument, "read policy file {}: {}", from, std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_rules(text, from);
}

}  // namespace hcomm::policy
