// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tidy/rules.h"

namespace hcomm::tidy {

std::set<std::string> compiled_sources(std::string_view json, std::string_view root) {
  std::set<std::string> sources;
  static const std::string kKey = "\"file\": \"";
  const std::string start = kKey + std::string(root) + "/";
  for (size_t at = json.find(start); at != std::string_view::npos; at = json.find(start, at + 1)) {
    const size_t begin = at + start.size();
    sources.emplace(json.substr(begin, json.find('"', begin) - begin));
  }
  return sources;
}

Strings check_built(const Tree& tree, const std::set<std::string>& compiled) {
  Strings faults;
  for (const auto& [path, text] : tree) {
    const std::string extension = extension_of(path);
    if ((extension == "cpp" || extension == "c") && !built_elsewhere(path) &&
        !compiled.contains(path))
      faults.push_back(fmt::format("{}: belongs to no target", path));
  }
  return faults;
}

Strings check_manuals(const Tree& tree) {
  std::set<std::string> tools;
  for (const auto& [path, text] : tree) {
    const bool builds =
        name_of(path) == "CMakeLists.txt" && !under(path, "tests") && !under(path, "examples");
    if (!builds) continue;
    for (const std::string& line : lines_of(text)) {
      static const std::string kCommand = "add_executable(";
      const size_t at = line.find(kCommand);
      if (at == std::string::npos) continue;
      const std::string_view rest = std::string_view(line).substr(at + kCommand.size());
      tools.emplace(rest.substr(0, rest.find_first_of(" )")));
    }
  }
  Strings faults;
  for (const std::string& tool : tools)
    if (!tree.contains("man/" + tool + ".1"))
      faults.push_back(fmt::format("man/{}.1: missing ({} is built)", tool, tool));
  for (const auto& [path, text] : tree) {
    if (!under(path, "man") || extension_of(path) != "1") continue;
    const std::string page = std::filesystem::path(path).stem().string();
    // hcc-plan(1) describes the subcommand `hcc plan`.
    if (!tools.contains(page) && !(page.starts_with("hcc-") && tools.contains("hcc") &&
                                   tree.contains("cli/command/" + page.substr(4) + ".cpp")))
      faults.push_back(fmt::format("{}: describes no tool", path));
  }
  return faults;
}

}  // namespace hcomm::tidy
