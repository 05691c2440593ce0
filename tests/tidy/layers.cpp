// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tidy/rules.h"

namespace hcomm::tidy {

namespace {

constexpr const char* kTable = "libcore/README.md";

// What stands between backquotes.
std::set<std::string> backquoted(std::string_view text) {
  std::set<std::string> names;
  const Strings parts = split(text, '`');
  for (size_t i = 1; i < parts.size(); i += 2) names.insert(parts[i]);
  return names;
}

// "libcore/transport/shm/mail.h" -> "transport"; "": not in a layer.
std::string layer_of(const std::string& path) {
  if (!under(path, "libcore")) return "";
  const Strings parts = split(path, '/');
  return parts.size() > 2 && parts[1] != "include" && parts[1] != "cmake" ? parts[1] : "";
}

bool is_cpp(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == "h" || extension == "hpp" || extension == "cpp";
}

bool is_tool(const std::string& path) {
  return under(path, "cli") || path.starts_with("hcc-");
}

// Folders of libcore that tools leave alone: they use the library by its public API.
const std::set<std::string> kLibraryOnly{"api", "comm", "device", "engine", "transport"};

}  // namespace

std::set<std::string> Layers::below(const std::string& folder) const {
  std::set<std::string> all;
  const auto found = direct.find(folder);
  if (found == direct.end()) return all;
  for (const std::string& layer : found->second) {
    all.insert(layer);
    all.merge(below(layer));
  }
  return all;
}

Layers read_layers(const Tree& tree) {
  Layers layers;
  const auto page = tree.find(kTable);
  if (page == tree.end()) return layers;
  for (const std::string& line : lines_of(page->second)) {
    const Strings cells = split(line, '|');
    if (cells.size() < 4) continue;
    const std::set<std::string> name = backquoted(cells[1]);
    if (name.size() != 1 || !tree.contains("libcore/" + *name.begin() + "/CMakeLists.txt"))
      continue;
    layers.direct[*name.begin()] = backquoted(cells[2]);
  }
  return layers;
}

Strings check_layers(const Tree& tree) {
  const Layers layers = read_layers(tree);
  Strings faults;
  if (layers.direct.empty()) faults.push_back(fmt::format("{}: has no table of layers", kTable));
  for (const auto& [path, text] : tree) {
    const std::string from = layer_of(path);
    if (!is_cpp(path) || (from.empty() && !is_tool(path))) continue;
    if (!from.empty() && !layers.direct.contains(from)) {
      faults.push_back(fmt::format("{}: '{}' is not in the table of {}", path, from, kTable));
      continue;
    }
    const std::set<std::string> below = layers.below(from);
    for (const auto& [line, include] : includes_of(text)) {
      const std::string to = split(include, '/')[0];
      const bool list = from.empty() && include.ends_with(".def");  // data, for `hcc version`
      if (!layers.direct.contains(to) || to == from || list) continue;
      if (from.empty() ? kLibraryOnly.contains(to) : !below.contains(to))
        faults.push_back(fmt::format("{}:{}: includes {} ({} may include {})", path, line, include,
                                     from.empty() ? "a tool" : from,
                                     from.empty() ? "what is not the library's own"
                                                  : fmt::format("{}", fmt::join(below, ", "))));
    }
  }
  return faults;
}

Strings check_layer_links(const Tree& tree) {
  Strings faults;
  for (const auto& [layer, allowed] : read_layers(tree).direct) {
    const std::string path = "libcore/" + layer + "/CMakeLists.txt";
    for (const std::string& line : lines_of(tree.at(path))) {
      if (!line.starts_with("hcomm_layer(")) continue;
      const size_t open = line.find('('), close = line.find(')');
      Strings words = words_of(std::string_view(line).substr(open + 1, close - open - 1));
      const std::set<std::string> links(words.begin() + 1, words.end());
      if (words[0] != layer || links != allowed)
        faults.push_back(fmt::format("{}: links {} ({} says {})", path, fmt::join(links, ", "),
                                     kTable, fmt::join(allowed, ", ")));
    }
  }
  return faults;
}

Strings check_includes(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path) || built_elsewhere(path)) continue;
    for (const auto& [line, include] : includes_of(text)) {
      bool found = false;
      for (const std::string& root : {std::string("libcore/"), std::string("libcore/include/"),
                                      std::string(), std::string("tests/"), folder_of(path) + "/"})
        found = found || tree.contains(root + include);
      if (!found)
        faults.push_back(fmt::format("{}:{}: includes {} (no such file)", path, line, include));
      if ((under(path, "libcore") || is_tool(path)) && include.find('/') == std::string::npos)
        faults.push_back(
            fmt::format("{}:{}: includes {} (write \"folder/file.h\")", path, line, include));
    }
  }
  return faults;
}

Strings check_environment(const Tree& tree) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path) || !under(path, "libcore") || path == "libcore/base/config.cpp") continue;
    size_t number = 0;
    for (const std::string& line : lines_of(code_of(text))) {
      number++;
      if (line.find("getenv(") != std::string::npos)
        faults.push_back(
            fmt::format("{}:{}: reads the environment (base/config.cpp alone does)", path, number));
    }
  }
  return faults;
}

}  // namespace hcomm::tidy
