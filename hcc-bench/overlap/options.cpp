// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/options.h"

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/version.h"
#include "hcc-bench/sizes.h"

namespace hcomm::bench::overlap {

namespace {

using cli::add_value;
using Text = const std::string&;

constexpr int64_t kMostRounds = 100'000;

// All that moves bytes and is one call: the two calls of a ping-pong wait for one another.
std::vector<Operation> parse(Text text) {
  const std::vector<Operation> list = parse_operations(text);
  for (const Operation operation : list)
    if (operation == Operation::barrier || operation == Operation::ping_pong ||
        operation == Operation::startup)
      fail(Code::invalid_argument, "{} has nothing to overlap", info(operation).name);
  return list;
}

std::vector<size_t> parse_positive(Text text) {
  std::vector<size_t> sizes = parse_sizes(text);
  for (const size_t size : sizes)
    if (size == 0) fail(Code::invalid_argument, "a size of 0 takes no time to overlap");
  return sizes;
}

int64_t parse_interval(Text text) {
  const int64_t time_ns = parse_duration_ns(text);
  if (time_ns <= 0) fail(Code::invalid_argument, "must be more than zero");
  return time_ns;
}

void describe_how(CLI::App& app, Options& o) {
  static const std::string kHow = "How";
  add_value(app,
            {"--operation", "NAMES",
             "operations, separated by commas, as of hcc-bench (default allreduce)", kHow},
            [&o](Text text) { o.operations = parse(text); });
  add_value(app, {"--sizes", "SIZES", "as of hcc-bench: 1M:64M, or a list (default 16M)", kHow},
            [&o](Text text) { o.sizes = parse_positive(text); });
  cli::add_choice(app,
                  {"--progress", "stream|plan",
                   "who moves it meanwhile: the worker of a stream (default), or the caller, with "
                   "a plan and hcommProgress",
                   kHow},
                  o.progress);
  add_value(app,
            {"--progress-every", "TIME",
             "with plan: compute about so long between two hcommProgress (default 100us)", kHow},
            [&o](Text text) { o.every_ns = parse_interval(text); });
  add_value(app, {"--rounds", "N", "times that the three take their turn (default 11)", kHow},
            [&o](Text text) { o.rounds = cli::parse_number(text, 1, kMostRounds); });
  add_value(app,
            {"--hang-timeout", "TIME|off",
             "no progress for so long: say which rank is where, exit 4 (default 30s)", kHow},
            [&o](Text text) { o.hang_ns = text == "off" ? 0 : parse_duration_ns(text); });
}

}  // namespace

void describe(CLI::App& app, Options& o) {
  static const std::string kOutput = "Output";
  cli::set_page(
      app,
      {.usage = "hcc-bench overlap [OPTION]...",
       .examples = {{"hcc-launch -n 2 hcc-bench overlap", "an all-reduce of 16 MiB"},
                    {"hcc-launch -n 4 hcc-bench overlap --sizes 1M:64M:x4 --progress plan", ""}},
       .notes = {"How much of an operation's time is hidden behind a computation: overlap = 1 - "
                 "(both - compute) / comm. comm is the time of the operation alone, compute that "
                 "of a computation of about the same length, in registers, on every rank, and "
                 "both that of starting the operation, computing, waiting for it. The three take "
                 "turns; times are medians over the rounds, of the slowest rank. 100 %: the "
                 "operation costs nothing; below 0: it costs more than alone. Every result is "
                 "checked."},
       .environment = "HCOMM_*: hcc env lists them. NO_COLOR.",
       .exits = "0 done; 1 a check failed; 2 usage; 3 cannot run here; 4 hang or time-out; 130, "
                "143 ended by a signal",
       .see_also = "hcc-bench(1), hcc-launch(1), hcomm(7)"});
  describe_how(app, o);
  cli::add_formats(
      app, {"--format", "table|json|csv|md", "what is written (default table)", kOutput}, o.format);
  add_value(app,
            {"-o,--output", "FILE",
             "write there, and the table to standard output; without a format its suffix decides",
             kOutput},
            [&o](Text text) { o.output = text; });
  cli::add_common(app, o.common, cli::version_line("hcc-bench"));
}

}  // namespace hcomm::bench::overlap
