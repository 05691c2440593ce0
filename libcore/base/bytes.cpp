// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"

namespace hcomm {

namespace {

struct Number {
  double value;
  std::string_view unit;
};

Number split_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0)
    fail(Code::invalid_argument, "{} '{}': not a number with a unit", what, text);
  return {value, text.substr(static_cast<size_t>(end - text.data()))};
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t replaced = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

size_t parse_size(std::string_view text) {
  static constexpr struct {
    std::string_view name;
    double factor;
  } kUnits[] = {{"", 1},          {"B", 1},          {"K", 0x1p10},   {"k", 0x1p10},
                {"M", 0x1p20},    {"m", 0x1p20},     {"G", 0x1p30},   {"g", 0x1p30},
                {"T", 0x1p40},    {"Ki", 0x1p10},    {"Mi", 0x1p20},  {"Gi", 0x1p30},
                {"KiB", 0x1p10},  {"MiB", 0x1p20},   {"GiB", 0x1p30}, {"TiB", 0x1p40},
                {"kB", 1e3},      {"KB", 1e3},       {"MB", 1e6},     {"GB", 1e9},
                {"TB", 1e12}};
  const Number number = split_number(text, "size");
  for (const auto& unit : kUnits)
    if (unit.name == number.unit) {
      const double bytes = number.value * unit.factor;
      if (bytes >= 0x1p63) fail(Code::invalid_argument, "size '{}': too large", text);
      if (bytes != std::floor(bytes))
        fail(Code::invalid_argument, "size '{}': not a whole number of bytes", text);
      return static_cast<size_t>(bytes);
    }
  fail(Code::invalid_argument,
       "size '{}': unknown unit '{}'; K M G and KiB MiB GiB are 1024, kB MB GB are 1000", text,
       number.unit);
}

int64_t parse_duration_ns(std::string_view text) {
  const Number number = split_number(text, "time");
  double factor = 0;
  if (number.unit == "ns") factor = 1;
  if (number.unit == "us") factor = 1e3;
  if (number.unit == "ms") factor = 1e6;
  if (number.unit == "s" || number.unit.empty()) factor = 1e9;
  if (number.unit == "m" || number.unit == "min") factor = 60e9;
  if (number.unit == "h") factor = 3600e9;
  if (factor == 0)
    fail(Code::invalid_argument, "time '{}': unknown unit '{}'; use ns, us, ms, s, m or h",
         text, number.unit);
  if (number.value * factor >= 9.2e18) fail(Code::invalid_argument, "time '{}': too large", text);
  return static_cast<int64_t>(number.value * factor);
}

std::string size_text(size_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < 4) {
    bytes /= 1024;
    unit++;
  }
  return fmt::format("{}{}", bytes, kNames[unit]);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.push_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

std::string nearest(std::string_view text, const std::string_view* known, size_t count) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (size_t i = 0; i < count; i++) {
    const size_t distance = edit_distance(text, known[i]);
    if (distance < best_distance) {
      best_distance = distance;
      best = known[i];
    }
  }
  return std::string(best);
}

}  // namespace hcomm
