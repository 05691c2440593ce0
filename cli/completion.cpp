// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/help.h"
#include "cli/text.h"

namespace hcomm::cli {

namespace {

using Options = std::vector<HelpOption>;

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_file(const HelpOption& option) {
  return option.value.find("FILE") != std::string::npos ||
         option.value.find("DIR") != std::string::npos ||
         option.value.find("PATTERN") != std::string::npos;
}

// All words that may stand as an argument of one app: options, subcommands, positional choices.
std::string words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* sub : subcommands(app)) words.push_back(sub->get_name());
  for (const HelpOption& option : options_of(app)) {
    const auto more = option.positional ? option.choices() : option.names;
    words.insert(words.end(), more.begin(), more.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// The values that follow an option, as cases over "command option".
std::string bash_values(const std::string& command, const Options& options) {
  std::string text;
  for (const HelpOption& option : options) {
    if (option.value.empty() || option.positional) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names)
      patterns.push_back(fmt::format("'{} {}'", command, name));
    const std::vector<std::string> choices = option.choices();
    const std::string reply =
        !choices.empty()     ? fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))",
                                           shell_quoted(fmt::format("{}", fmt::join(choices, " "))))
        : takes_file(option) ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                             : "COMPREPLY=()";
    text += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), reply);
  }
  return text;
}

std::string function_name(std::string_view tool) {
  std::string name = "_";
  for (const char c : tool) name += c == '-' ? '_' : c;
  return name;
}

std::string bash(const CLI::App& tool) {
  const std::string function = function_name(tool.get_name());
  std::string names, values = bash_values("", options_of(tool)), words;
  for (const CLI::App* sub : subcommands(tool)) {
    names += fmt::format("{}{}", names.empty() ? "" : "|", sub->get_name());
    values += bash_values(sub->get_name(), options_of(*sub));
    words += fmt::format("    {}) words={} ;;\n", sub->get_name(), shell_quoted(words_of(*sub)));
  }
  std::string text = fmt::format("{}() {{\n", function);
  text +=
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words "
      "word\n";
  if (!names.empty())
    text += fmt::format(
        "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
        "    case $word in {}) command=$word; break ;; esac\n  done\n",
        names);
  text += fmt::format("  case \"$command $prev\" in\n{}  esac\n", values);
  text += fmt::format("  case $command in\n{}    *) words={} ;;\n  esac\n", words,
                      shell_quoted(words_of(tool)));
  text += "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n";
  return text + fmt::format("complete -o default -F {} {}\n", function, tool.get_name());
}

// One specification of _arguments for each name of an option.
std::string zsh_options(const CLI::App& app) {
  std::string text;
  for (const HelpOption& option : options_of(app)) {
    std::string doc;
    for (const char c : option.doc) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') doc += '\\';
      doc += c;
    }
    const std::vector<std::string> choices = option.choices();
    const std::string action = !choices.empty()     ? fmt::format("({})", fmt::join(choices, " "))
                               : takes_file(option) ? "_files"
                                                    : "";
    if (option.positional) {
      text +=
          fmt::format(" \\\n    {}", shell_quoted(fmt::format("*:{}:{}", option.names[0], action)));
      continue;
    }
    for (const std::string& name : option.names) {
      const std::string value =
          option.value.empty()
              ? ""
              : fmt::format(":{}:{}", choices.empty() ? option.value : "value", action);
      text += fmt::format(" \\\n    {}", shell_quoted(fmt::format("{}[{}]{}", name, doc, value)));
    }
  }
  return text;
}

std::string zsh(const CLI::App& tool) {
  const std::string function = function_name(tool.get_name());
  std::string text = fmt::format("{}() {{\n", function), names;
  for (const CLI::App* sub : subcommands(tool)) {
    names += fmt::format(" {}", sub->get_name());
    text += fmt::format(
        "  if (( ${{words[(I){0}]}} )) && [[ ${{words[CURRENT]}} != {0} ]]; then\n"
        "    _arguments '1:command:({0})'{1}\n    return\n  fi\n",
        sub->get_name(), zsh_options(*sub));
  }
  text += "  _arguments";
  if (!names.empty()) text += fmt::format(" '1:command:({})'", names.substr(1));
  return text + zsh_options(tool) + fmt::format("\n}}\ncompdef {} {}\n", function, tool.get_name());
}

std::string fish_options(const std::string& prefix, const CLI::App& app) {
  std::string text;
  for (const HelpOption& option : options_of(app)) {
    std::string line = prefix;
    const std::vector<std::string> choices = option.choices();
    if (option.positional) {
      if (choices.empty()) continue;
      line += fmt::format(" -a {}", shell_quoted(fmt::format("{}", fmt::join(choices, " "))));
    }
    for (const std::string& name : option.names) {
      if (option.positional) break;
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty() && !option.positional) line += takes_file(option) ? " -r" : " -x";
    if (!choices.empty() && !option.positional)
      line += fmt::format(" -a {}", shell_quoted(fmt::format("{}", fmt::join(choices, " "))));
    text += line + fmt::format(" -d {}\n", shell_quoted(option.doc));
  }
  return text;
}

std::string fish(const CLI::App& tool) {
  const std::string start = fmt::format("complete -c {}", tool.get_name());
  const auto subs = subcommands(tool);
  if (subs.empty()) return fish_options(start, tool);
  std::string text = fish_options(start + " -n __fish_use_subcommand", tool);
  for (const CLI::App* sub : subs) {
    text += fmt::format("{} -f -n __fish_use_subcommand -a {} -d {}\n", start, sub->get_name(),
                        shell_quoted(sub->get_description()));
    text += fish_options(
        fmt::format("{} -n '__fish_seen_subcommand_from {}'", start, sub->get_name()), *sub);
  }
  return text;
}

}  // namespace

std::string completion(std::span<const CLI::App* const> tools, Shell shell) {
  std::string text = shell == Shell::zsh ? "#compdef" : "#";
  for (const CLI::App* tool : tools)
    text += fmt::format(" {}{}", shell == Shell::zsh ? "" : "completion of ", tool->get_name());
  text += "\n";
  for (const CLI::App* tool : tools) {
    if (shell == Shell::bash) text += bash(*tool);
    if (shell == Shell::zsh) text += zsh(*tool);
    if (shell == Shell::fish) text += fish(*tool);
  }
  return text;
}

}  // namespace hcomm::cli
