// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/options.h"
#include "cli/text.h"

namespace hcomm::cli {

namespace {

constexpr size_t kWidth = 80, kIndent = 28;

// Carries the page of an app in its formatter slot, so that App::help() works too.
class PageFormatter : public CLI::FormatterBase {
 public:
  explicit PageFormatter(Page page) : page_(std::move(page)) {}
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_text(*app);
  }
  const Page& page() const { return page_; }

 private:
  Page page_;
};

Page page_of(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<PageFormatter>(app.get_formatter());
  return formatter ? formatter->page() : Page{.usage = app.get_name()};
}

std::string entry(const std::string& left, std::string_view doc) {
  std::string text;
  std::string line = "  " + left;
  if (line.size() + 2 > kIndent) {
    text += line + "\n";
    line.clear();
  }
  for (const std::string& part : wrap(doc, kWidth - kIndent)) {
    line.resize(std::max(line.size(), kIndent), ' ');
    text += line + part + "\n";
    line.clear();
  }
  return text;
}

std::string option_entry(const HelpOption& option) {
  std::string left = option.names.front().starts_with("--") ? "    " : "";
  for (const std::string& name : option.names) {
    if (&name != &option.names.front()) left += ", ";
    left += name;
  }
  if (!option.value.empty() && !option.positional) left += " " + option.value;
  return entry(left, option.doc);
}

std::string paragraph(std::string_view title, std::string_view body) {
  if (body.empty()) return {};
  std::string text = title.empty() ? std::string("\n") : fmt::format("\n{}:\n", title);
  for (const std::string& line : wrap(body, kWidth - 2)) text += "  " + line + "\n";
  return text;
}

std::string options_text(const CLI::App& app) {
  const std::vector<HelpOption> options = options_of(app);
  std::vector<std::string> groups;
  for (const HelpOption& option : options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  const auto general = std::find(groups.begin(), groups.end(), "General");
  if (general != groups.end()) std::rotate(general, general + 1, groups.end());  // last
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("\n{}:\n", group);
    for (const HelpOption& option : options)
      if (option.group == group) text += option_entry(option);
  }
  return text;
}

}  // namespace

void set_page(CLI::App& app, Page page) {
  app.formatter(std::make_shared<PageFormatter>(std::move(page)));
}

std::vector<std::string> HelpOption::choices() const {
  if (value.find('|') == std::string::npos || value.find_first_of(" []") != std::string::npos)
    return {};
  return CLI::detail::split(value, '|');
}

std::vector<HelpOption> options_of(const CLI::App& app) {
  std::vector<HelpOption> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    HelpOption entry;
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.positional = entry.names.empty();
    if (entry.positional) entry.names.push_back(option->get_name(true));
    if (option->get_expected_max() > 0) entry.value = option->get_type_name();
    entry.doc = option->get_description();
    entry.group = option->get_group();
    options.push_back(std::move(entry));
  }
  return options;
}

std::string help_text(const CLI::App& app) {
  const Page page = page_of(app);
  std::string text = fmt::format("usage: {}\n", page.usage);
  for (const std::string& line : wrap(app.get_description(), kWidth)) text += line + "\n";
  if (!page.examples.empty()) text += "\nExamples:\n";
  for (const Page::Example& example : page.examples) {
    text += fmt::format("  {}\n", example.command);
    if (!example.meaning.empty()) text += fmt::format("      {}\n", example.meaning);
  }
  const auto subs = app.get_subcommands([](const CLI::App*) { return true; });
  if (!subs.empty()) text += "\nCommands:\n";
  for (const CLI::App* sub : subs) text += entry(sub->get_name(), sub->get_description());
  text += options_text(app);
  for (const std::string_view note : page.notes) text += paragraph("", note);
  text += paragraph("Environment", page.environment);
  text += paragraph("Exit codes", page.exits);
  text += paragraph("Files", page.files);
  text += paragraph("See also", page.see_also);
  return text;
}

}  // namespace hcomm::cli
