// SPDX-License-Identifier: Apache-2.0
// An option table as text: --help (usage, examples, options in their groups, environment, exit
// codes) and the completions of three shells. Both read the same CLI::App that parses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hcomm::cli {

struct HelpOption {
  std::vector<std::string> names;  // "-o", "--output"; a positional: its bare name
  std::string value;               // FILE, "first|all|off"; empty: a switch
  std::string doc, group;
  bool positional = false;
  std::vector<std::string> choices() const;  // of "first|all|off"; else empty
};
// The visible options in the order of their description; an option may be hidden by an empty group.
std::vector<HelpOption> options_of(const CLI::App& app);

std::string help_text(const CLI::App& app);

enum class Shell : uint8_t { bash, zsh, fish };
std::string completion(std::span<const CLI::App* const> tools, Shell shell);

}  // namespace hcomm::cli
