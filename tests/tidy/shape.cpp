// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tidy/rules.h"

namespace hcomm::tidy {

namespace {

constexpr size_t kColumns = 100, kFileLines = 500, kFunctionLines = 70, kModules = 12;

bool is_code(const std::string& path) {
  static const std::set<std::string> kExtensions{"h", "hpp", "cpp", "c", "def", "sh", "cmake"};
  return kExtensions.contains(extension_of(path)) || name_of(path) == "CMakeLists.txt" ||
         path == ".ci/run";
}

bool is_source(const std::string& path) {
  static const std::set<std::string> kExtensions{"h", "hpp", "cpp", "c"};
  return kExtensions.contains(extension_of(path));
}

// Characters, not bytes, of UTF-8.
size_t columns_of(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool has_word(std::string_view line, std::string_view word) {
  const auto inside = [&](size_t at) {
    return at < line.size() && std::isalnum(static_cast<unsigned char>(line[at]));
  };
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1))
    if ((at == 0 || !inside(at - 1)) && !inside(at + word.size())) return true;
  return false;
}

}  // namespace

Strings check_lines(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    size_t number = 0;
    for (const std::string& line : lines_of(text)) {
      number++;
      if (const size_t columns = columns_of(line); columns > kColumns)
        faults.push_back(fmt::format("{}:{}: {} columns ({})", path, number, columns, kColumns));
      if (line.find('\t') != std::string::npos)
        faults.push_back(fmt::format("{}:{}: a tab (blanks)", path, number));
      if (line.ends_with(' ') || line.ends_with('\r'))
        faults.push_back(fmt::format("{}:{}: blanks at the end", path, number));
    }
    if (!text.empty() && !text.ends_with('\n'))
      faults.push_back(fmt::format("{}:{}: no newline at the end", path, number));
  }
  return faults;
}

Strings check_lengths(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (!is_code(path)) continue;
    if (const size_t lines = lines_of(text).size(); lines > kFileLines)
      faults.push_back(fmt::format("{}: {} lines ({})", path, lines, kFileLines));
    if (!is_source(path)) continue;
    for (const Function& function : functions_of(text))
      if (function.lines > kFunctionLines)
        faults.push_back(fmt::format("{}:{}: {} has {} lines ({})", path, function.line,
                                     function.name, function.lines, kFunctionLines));
  }
  return faults;
}

Strings check_folders(const Tree& tree) {
  std::map<std::string, std::set<std::string>> modules;
  for (const auto& [path, text] : tree)
    if (is_source(path) && !under(path, "tests"))
      modules[folder_of(path)].insert(std::filesystem::path(path).stem().string());
  Strings faults;
  for (const auto& [folder, names] : modules)
    if (names.size() > kModules)
      faults.push_back(fmt::format("{}: {} modules ({})", folder, names.size(), kModules));
  return faults;
}

Strings check_heads(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    const Strings lines = lines_of(text);
    static const std::string kLicence = " SPDX-License-Identifier: Apache-2.0";
    if (lines.empty() || (lines[0] != "//" + kLicence && lines[0] != "/*" + kLicence))
      faults.push_back(fmt::format("{}:1: no '//{}'", path, kLicence));
    const bool header = extension_of(path) == "h" || extension_of(path) == "hpp";
    if (header && !under(path, "tests/consumer") &&
        (lines.size() < 2 || !(lines[1].starts_with("// ") || lines[1].starts_with(" *"))))
      faults.push_back(fmt::format("{}:2: no opening paragraph", path));
  }
  return faults;
}

Strings check_lists(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    // Its order is that of preference.
    if (extension_of(path) != "def" || path == "libcore/transport/transports.def") continue;
    Strings entries;
    for (const std::string& line : lines_of(text))
      if (!line.empty() && !line.starts_with("//")) entries.push_back(line);
    const auto wrong = std::is_sorted_until(entries.begin(), entries.end());
    if (wrong != entries.end())
      faults.push_back(fmt::format("{}: {} is not in its place (sorted)", path, *wrong));
    if (std::adjacent_find(entries.begin(), entries.end()) != entries.end())
      faults.push_back(fmt::format("{}: an entry stands there twice", path));
  }
  return faults;
}

Strings check_words(const Tree& tree) {
  // Taken apart, for this file is read as well.
  static const Strings kWords{
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "HA"
      "CK"};
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (path == "LICENSE") continue;
    size_t number = 0;
    for (const std::string& line : lines_of(text)) {
      number++;
      for (const std::string& word : kWords)
        if (has_word(line, word))
          faults.push_back(
              fmt::format("{}:{}: {} (finish it, or open an issue)", path, number, word));
    }
  }
  return faults;
}

}  // namespace hcomm::tidy
