// SPDX-License-Identifier: Apache-2.0
// The family's conventions over CLI11. A tool describes its options once, in a function over a
// CLI::App; that table is its parser, its --help, its completion, and what the tests compare its
// man page with. -h is always help; help and version go to standard output; a wrong command line is
// told on standard error with the nearest name, exit 2; values are refused, never guessed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit.h"
#include "cli/terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hcomm::cli {

// What --help shows beside the options.
struct Page {
  struct Example {
    std::string_view command, meaning;
  };
  std::string_view usage;  // without the word "usage"
  std::vector<Example> examples;
  std::vector<std::string_view> notes;  // paragraphs after the options
  std::string_view environment, exits, files, see_also;
};
void set_page(CLI::App& app, Page page);

inline constexpr std::string_view kExits =
    "0 done; 1 a problem was found; 2 usage; 3 cannot run here";

struct OptionSpec {
  std::string names;  // "-o,--output"; without dashes: a positional
  std::string value;  // FILE, N, "first|all|off"; empty: a switch
  std::string doc;
  std::string group = "Options";
};
// `set` may throw hcomm::Error or std::exception: its text becomes the usage error. Given twice,
// the last one counts.
CLI::Option* add_value(CLI::App& app, const OptionSpec& spec,
                       std::function<void(const std::string&)> set);
// spec.value is the list of choices, "first|all|off".
CLI::Option* add_choice(CLI::App& app, const OptionSpec& spec, std::string& into);
CLI::Option* add_switch(CLI::App& app, const OptionSpec& spec, bool& into);
// A choice of formats and a short form of each but "table": --json is --format json. At most one of
// them may be given.
void add_formats(CLI::App& app, const OptionSpec& spec, std::string& into);

// Options that every tool has: -q, -v, --color, and --version, which prints `version`.
struct Common {
  bool quiet = false;
  int verbosity = 0;
  ColorMode color = ColorMode::automatic;
};
void add_common(CLI::App& app, Common& common, const std::string& version);

// Parses. A value: the exit code with which to leave main (help, version, usage error). Of several
// ranks with one command line, one speaks.
enum class Voice : uint8_t { aloud, silent };
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv,
                         Voice voice = Voice::aloud);

// Whole numbers within bounds; the text is quoted in the error.
int64_t parse_number(std::string_view text, int64_t least, int64_t most);
// "2", "2%", "0.5 %" -> 0.02, 0.02, 0.005. Throws invalid_argument.
double parse_percent(std::string_view text);

// What `text` was meant to be, as "; did you mean --x?", or "".
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

// Runs a tool's main; an exception becomes "tool: text" on standard error and an exit code.
int guarded(std::string_view tool, const std::function<int()>& body);

}  // namespace hcomm::cli
