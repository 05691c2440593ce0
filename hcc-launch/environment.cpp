// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/environment.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/config.h"
#include "base/error.h"

namespace hcomm::launch {

namespace {

using View = std::string_view;
using Warn = std::function<void(std::string)>;

View name_of(View entry) {
  return entry.substr(0, entry.find('='));
}

bool is_ours(View name) {
  return std::ranges::any_of(settings(), [&](const Setting& setting) {
    return setting.name == name && setting.kind != Setting::Kind::plain;
  });
}

bool is_pattern(View name) {
  return name.find_first_of("*?[") != name.npos;
}

bool matches(View name, const std::string& pattern) {
  if (!is_pattern(pattern)) return name == pattern;
  return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

class Editor {
 public:
  Editor(std::span<const char* const> inherited, const Warn& warn)
      : inherited_(inherited), warn_(warn) {
    for (const char* entry : inherited)
      if (!is_ours(name_of(entry))) entries_.emplace_back(entry);
  }

  void unset(const std::string& pattern) {
    const auto gone = std::erase_if(
        entries_, [&](const std::string& entry) { return matches(name_of(entry), pattern); });
    if (gone == 0) warn_(fmt::format("--unset {}: no such variable", pattern));
  }

  // "NAME=VALUE", "NAME" or "P*". `source` names the option or file:line.
  void pass(const std::string& text, View source) {
    const View name = name_of(text);
    if (name.empty())
      fail(Code::invalid_argument, "{} '{}': a variable has a name; write NAME=VALUE", source,
           text);
    if (is_ours(name))
      fail(Code::invalid_argument, "{} {}: hcc-launch itself sets this variable", source, name);
    if (name.size() < text.size()) return set(text);
    bool found = false;
    for (const char* entry : inherited_)
      if (matches(name_of(entry), text) && !is_ours(name_of(entry)) &&
          View(entry) != name_of(entry)) {
        set(entry);
        found = true;
      }
    if (!found) warn_(fmt::format("{} {}: not set here, so the ranks do not get it", source, text));
  }

  void read_file(const std::string& path) {
    std::ifstream file(path);
    if (!file)
      fail(Code::invalid_argument, "--env-file {}: open it: {}", path, std::strerror(errno));
    std::string line;
    for (int number = 1; std::getline(file, line); number++) {
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == line.npos || line[begin] == '#') continue;
      pass(line.substr(begin), fmt::format("{}:{}:", path, number));
    }
    if (file.bad()) fail(Code::invalid_argument, "--env-file {}: it cannot be read", path);
  }

  std::vector<std::string> take() { return std::move(entries_); }

 private:
  void set(const std::string& entry) {
    const View name = name_of(entry);
    for (std::string& each : entries_)
      if (name_of(each) == name) {
        each = entry;
        return;
      }
    entries_.push_back(entry);
  }

  std::span<const char* const> inherited_;
  const Warn& warn_;
  std::vector<std::string> entries_;
};

}  // namespace

std::vector<std::string> environment_for(const Program& program,
                                         std::span<const char* const> inherited, const Warn& warn) {
  Editor editor(inherited, warn);
  for (const std::string& name : program.unset) editor.unset(name);
  for (const std::string& path : program.env_files) editor.read_file(path);
  for (const std::string& text : program.exports) editor.pass(text, "-x");
  return editor.take();
}

std::string_view value_of(std::span<const std::string> environment, std::string_view name) {
  for (const std::string& entry : environment)
    if (name_of(entry) == name && entry.size() > name.size())
      return View(entry).substr(name.size() + 1);
  return {};
}

}  // namespace hcomm::launch
