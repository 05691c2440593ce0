// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/measure/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/bytes.h"

namespace hcomm::bench {

namespace {

// The number behind `key` in a file of lines that begin with a word; nothing when it is not there.
std::optional<uint64_t> number_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    uint64_t value = 0;
    if (words >> word && word == key && words >> value) return value;
  }
  return std::nullopt;
}

// The number that a file holds; nothing for a word ("max") and where there is no file.
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

uint64_t left_of(const std::string& group) {
  const auto limit = number_in(group + "/memory.max"), used = number_in(group + "/memory.current");
  if (!limit || !used) return UINT64_MAX;
  // Pages of files that nobody has touched lately are counted, but given up for the asking.
  const uint64_t kept =
      *used - std::min(*used, number_of(group + "/memory.stat", "inactive_file").value_or(0));
  return *limit > kept ? *limit - kept : 0;
}

std::string own_group() {
  std::ifstream file("/proc/self/cgroup");  // "0::/user.slice/..." of version 2
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "/";
}

}  // namespace

double resident_mib() {
  return static_cast<double>(number_of("/proc/self/smaps_rollup", "Pss:").value_or(0)) / 1024;
}

uint64_t group_bytes(const std::string& mount, std::string path) {
  uint64_t least = UINT64_MAX;
  while (true) {
    least = std::min(least, left_of(mount + path));
    if (path.empty()) return least;
    path.erase(path.rfind('/'));
  }
}

size_t last_level_cache_bytes() {
  size_t largest = 0;
  for (int index = 0; index < 8; index++) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::string text;
    if (file >> text) largest = std::max(largest, parse_size(text));
  }
  return largest > 0 ? largest : 32 * kMiB;
}

uint64_t available_bytes() {
  const uint64_t free = number_of("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  return std::min(free, group_bytes("/sys/fs/cgroup", own_group()));
}

}  // namespace hcomm::bench
