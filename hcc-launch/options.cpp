// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/help.h"
#include "cli/version.h"
#include "hcc-launch/help.h"

namespace hcomm::launch {

namespace {

using View = std::string_view;

constexpr const char* kJob = "Job";
constexpr const char* kOutput = "Output and input";
constexpr const char* kEnding = "Ending";
constexpr uint32_t kMaxRanks = 65536;

uint32_t parse_rank(View text) {
  return static_cast<uint32_t>(cli::parse_number(text, 0, kMaxRanks - 1));
}

int64_t parse_ms(View text) {
  return (parse_duration_ns(text) + 999'999) / 1'000'000;
}

void set_bind(Options& options, View value) {
  constexpr View kList = "list:";
  options.bind_list.clear();
  if (value == "none" || value == "core" || value == "numa") {
    options.bind = value == "none" ? Bind::none : value == "core" ? Bind::core : Bind::numa;
    return;
  }
  if (!value.starts_with(kList))
    fail(Code::invalid_argument, "'{}' is not one of none, core, numa, list:CORES;CORES...", value);
  options.bind = Bind::list;
  for (View rest = value.substr(kList.size());;) {
    const size_t end = std::min(rest.find(';'), rest.size());
    options.bind_list.push_back(parse_numbers(rest.substr(0, end)));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
}

Label parse_label(View value) {
  if (value == "auto") return Label::automatic;
  if (value == "none") return Label::none;
  if (value == "rank") return Label::rank;
  if (value == "host:rank") return Label::host_rank;
  fail(Code::invalid_argument, "'{}' is not one of auto, none, rank, host:rank", value);
}

void set_stdin(Options& options, View value) {
  options.stdin_to = value == "none" ? StdinTo::none : value == "all" ? StdinTo::all : StdinTo::one;
  if (options.stdin_to == StdinTo::one) options.stdin_rank = parse_rank(value);
}

Wrap parse_wrap(View value) {
  const size_t equals = value.find('=');
  Wrap wrap;
  if (equals != value.npos) wrap.command = split_words(value.substr(equals + 1));
  if (wrap.command.empty())
    fail(Code::invalid_argument, "'{}' is not RANKS=COMMAND, e.g. 0='gdb --args'", value);
  if (const View ranks = value.substr(0, equals); ranks != "all") wrap.ranks = parse_numbers(ranks);
  return wrap;
}

// An option that may be given again and again.
void add_list(CLI::App& parser, const cli::OptionSpec& spec,
              std::function<void(const std::string&)> add) {
  const auto add_all = [add = std::move(add), name = spec.names](const CLI::results_t& values) {
    try {
      for (const std::string& value : values) add(value);
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", name, error.text());
    }
    return true;
  };
  parser.add_option(spec.names, add_all, spec.doc)
      ->type_name(spec.value)
      ->group(spec.group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void describe_program(CLI::App& parser, Options& options) {
  const std::string group(kProgramGroup);
  const auto program = [&options]() -> Program& { return options.programs.back(); };
  cli::add_value(parser, {"-n,--np", "N", "ranks that run this program; 1 by default", group},
                 [program](const std::string& text) {
                   program().ranks = static_cast<uint32_t>(cli::parse_number(text, 1, kMaxRanks));
                 });
  cli::add_value(parser, {"--wdir", "DIR", "working directory of these ranks", group},
                 [program](const std::string& text) { program().folder = text; });
  add_list(parser,
           {"-x", "VARIABLE",
            "NAME=VALUE sets a variable for these ranks; NAME or a pattern 'P*' says that it is to "
            "be passed on; may be repeated, the last one counts",
            group},
           [program](const std::string& text) { program().exports.push_back(text); });
  add_list(parser,
           {"--env-file", "FILE", "a file of lines NAME=VALUE, as by -x; may be repeated", group},
           [program](const std::string& text) { program().env_files.push_back(text); });
  add_list(parser,
           {"--unset", "NAME", "takes a variable, or a pattern, away from these ranks", group},
           [program](const std::string& text) { program().unset.push_back(text); });
}

void describe_job(CLI::App& parser, Options& options) {
  add_list(parser,
           {"--wrap", "RANKS=COMMAND",
            "puts a command before the program of these ranks, e.g. 0,3-5='valgrind -q', all=...; "
            "may be repeated",
            kJob},
           [&options](const std::string& text) { options.wraps.push_back(parse_wrap(text)); });
  cli::add_switch(parser, {"--dry-run", "", "shows what would run where, and runs nothing", kJob},
                  options.dry_run);
  cli::add_value(
      parser,
      {"--bind-to", "HOW",
       "none (default), core, numa, or list:0-3;4-7 with a set of cores for each rank", kJob},
      [&options](const std::string& text) { set_bind(options, text); });
  cli::add_switch(parser,
                  {"--show-bindings", "",
                   "shows the cores that each rank has after its program was executed", kJob},
                  options.show_bindings);
}

void describe_output(CLI::App& parser, Options& options) {
  cli::add_value(
      parser,
      {"--label", "HOW", "begins lines with their origin: auto (default), none, rank or host:rank",
       kOutput},
      [&options](const std::string& text) { options.label = parse_label(text); });
  cli::add_switch(parser,
                  {"--timestamp", "",
                   "begins lines with the time (UTC, microseconds) when they were read from the "
                   "rank",
                   kOutput},
                  options.timestamp);
  cli::add_value(parser,
                 {"--output-pattern", "PATTERN",
                  "writes the output of each rank to a file instead, e.g. '%h/%R.out'", kOutput},
                 [&options](const std::string& text) { options.output_pattern = text; });
  cli::add_value(
      parser, {"--output-dir", "DIR", "the same as --output-pattern 'DIR/%h/%R.out'", kOutput},
      [&options](const std::string& text) { options.output_pattern = text + "/%h/%R.out"; });
  cli::add_switch(parser, {"--tee", "", "with files, shows the output too", kOutput}, options.tee);
  cli::add_value(
      parser,
      {"--stdin", "TO",
       "the rank that has our standard input: 0 (default), another number, none, or all", kOutput},
      [&options](const std::string& text) { set_stdin(options, text); });
}

void describe_ending(CLI::App& parser, Options& options) {
  cli::add_value(parser,
                 {"--timeout", "TIME",
                  "ends the job after this time, e.g. 90s or 15m; none by default", kEnding},
                 [&options](const std::string& text) { options.timeout_ms = parse_ms(text); });
  cli::add_value(
      parser,
      {"--grace", "TIME",
       "how long ranks that are told to end (SIGTERM) have until SIGKILL; 3s by default", kEnding},
      [&options](const std::string& text) { options.grace_ms = parse_ms(text); });
  cli::add_switch(parser,
                  {"--keep-going", "", "lets the other ranks run on when one has failed", kEnding},
                  options.keep_going);
  cli::add_value(parser,
                 {"--report", "FILE", "writes how the job and each rank ended, as JSON", kEnding},
                 [&options](const std::string& text) { options.report = text; });
}

void describe_help(CLI::App& parser, Options& options) {
  cli::add_common(parser, options.common, cli::version_line("hcc-launch"));
  parser.set_help_flag();  // ours takes a topic
  const auto show = [&options, &parser](const CLI::results_t& values) {
    const bool bare = values.empty() || values[0].empty();
    options.print = bare ? cli::help_text(parser) : help_topic(values[0]);
    return true;
  };
  parser.add_option("-h,--help", show, fmt::format("prints this, or more on {}", topic_names()))
      ->type_name("[TOPIC]")
      ->group("General")
      ->expected(0, 1);
}

[[noreturn]] void unknown_option(const CLI::App& parser, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const cli::HelpOption& option : cli::options_of(parser))
    known.insert(known.end(), option.names.begin(), option.names.end());
  fail(Code::invalid_argument, "unknown option {}{}", name, cli::did_you_mean(name, known));
}

// Parses the options before a program into `options`; what follows them is returned.
std::vector<std::string> parse_segment(std::span<char* const> words, Options& options) {
  CLI::App parser;
  describe(parser, options);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    parser.parse(reversed);
  } catch (const CLI::CallForVersion& version) {
    options.print = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    fail(Code::invalid_argument, "{}", error.what());
  }
  std::vector<std::string> rest = parser.remaining();
  if (!options.print.empty()) return rest;
  if (!rest.empty() && rest[0].size() > 1 && rest[0][0] == '-' && rest[0] != "--")
    unknown_option(parser, rest[0]);
  if (options.programs.size() > 1)
    for (const CLI::Option* option : parser.get_options())
      if (option->count() > 0 && option->get_group() != kProgramGroup)
        fail(Code::invalid_argument, "{} is for the whole job: it belongs before the first program",
             option->get_name());
  return rest;
}

}  // namespace

void describe(CLI::App& parser, Options& options) {
  parser.name("hcc-launch");
  parser.description("Runs a program as the ranks of one job on this host.");
  parser.prefix_command();
  cli::set_page(parser, help_page());
  describe_program(parser, options);
  describe_job(parser, options);
  describe_output(parser, options);
  describe_ending(parser, options);
  describe_help(parser, options);
}

Options parse_options(std::span<char* const> arguments) {
  Options options;
  auto at = arguments.begin();
  while (true) {
    const auto colon = std::find_if(at, arguments.end(),
                                    [](const char* word) { return std::strcmp(word, ":") == 0; });
    options.programs.emplace_back();
    std::vector<std::string> rest = parse_segment({at, colon}, options);
    if (!options.print.empty()) return options;
    const bool everything = !rest.empty() && rest[0] == "--";
    if (everything) {  // after -- nothing is ours any more, not even a colon
      rest.erase(rest.begin());
      rest.insert(rest.end(), colon, arguments.end());
    }
    if (rest.empty() && options.programs.size() == 1)
      fail(Code::invalid_argument, "no program is given");
    if (rest.empty())
      fail(Code::invalid_argument, "no program is given behind the colon; the job has {} before it",
           options.programs.size() - 1);
    options.programs.back().command = std::move(rest);
    if (everything || colon == arguments.end()) return options;
    at = colon + 1;
  }
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    const bool escapes = quote == 0 || (quote == '"' && i + 1 < text.size() &&
                                        std::strchr("\"\\$`", text[i + 1]) != nullptr);
    if (c == '\\' && escapes && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) fail(Code::invalid_argument, "'{}': a quote {} has no end", text, quote);
  return words;
}

}  // namespace hcomm::launch
