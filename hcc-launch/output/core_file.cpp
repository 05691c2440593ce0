// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/output/core_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace hcomm::launch {

namespace {

namespace files = std::filesystem;

constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";
constexpr size_t kNameColumns = 15;  // of a process, as the kernel keeps it

std::optional<std::string> value_of(char letter, const CoreFacts& facts) {
  switch (letter) {
    case '%':
      return "%";
    case 'p':
      return std::to_string(facts.pid);
    case 'P':
      if (!facts.outer_pid) return std::nullopt;
      return std::to_string(*facts.outer_pid);
    case 'u':
      return std::to_string(facts.uid);
    case 'g':
      return std::to_string(facts.gid);
    case 's':
      return std::to_string(facts.signal);
    case 't':
      return std::to_string(facts.time_s);
    case 'h':
      return facts.host;
    case 'e':
      return files::path(facts.program).filename().string().substr(0, kNameColumns);
    default:
      return std::nullopt;
  }
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::optional<std::string> expand_core_pattern(std::string_view pattern, bool append_pid,
                                               const CoreFacts& facts) {
  std::string name;
  bool names_pid = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '%') {
      name += pattern[i];
    } else if (++i < pattern.size()) {  // a lone % at the end is dropped
      const auto value = value_of(pattern[i], facts);
      if (!value) return std::nullopt;
      name += *value;
      names_pid = names_pid || pattern[i] == 'p';
    }
  }
  return append_pid && !names_pid ? fmt::format("{}.{}", name, facts.pid) : name;
}

CoreFile find_core(CoreFacts facts, const std::string& folder) {
  const std::string pattern = first_line("/proc/sys/kernel/core_pattern");
  if (pattern.starts_with('|'))
    return {"", fmt::format("core: handed to {}; try coredumpctl info {}", pattern.substr(1),
                            facts.pid)};
  std::error_code error;
  if (files::read_symlink("/proc/self/ns/pid", error) == kFirstPidNamespace)
    facts.outer_pid = facts.pid;
  const bool append_pid = first_line("/proc/sys/kernel/core_uses_pid") == "1";
  if (const auto name = expand_core_pattern(pattern, append_pid, facts)) {
    const files::path from = files::absolute(folder.empty() ? "." : folder, error);
    const std::string path = (from / *name).lexically_normal().string();
    if (files::exists(path, error)) return {path, fmt::format("core: {}", path)};
  }
  return {"", fmt::format("core: by the pattern {} (core(5))", pattern)};
}

}  // namespace hcomm::launch
