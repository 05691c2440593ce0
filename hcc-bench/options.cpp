// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/options.h"

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/version.h"
#include "hcc-bench/explain.h"
#include "hcc-bench/sizes.h"

namespace hcomm::bench {

namespace {

using cli::add_choice;
using cli::add_switch;
using cli::add_value;
using Text = const std::string&;

constexpr int64_t kMost = 1'000'000, kMostRounds = 1000;

template <typename Value, typename Named>
std::vector<Value> parse_list(Text text, std::string_view what, Named named) {
  std::vector<Value> list;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    const std::optional<Value> value = named(word);
    if (!value) fail(Code::invalid_argument, "unknown {} '{}'", what, word);
    list.push_back(*value);
  }
  return list;
}

std::vector<Type> parse_types(Text text) {
  if (text != "all") return parse_list<Type>(text, "type", type_named);
  std::vector<Type> list;
  for (int i = 0; i < kTypes; i++) list.push_back(static_cast<Type>(i));
  return list;
}

double seconds(Text text) {
  return static_cast<double>(parse_duration_ns(text)) * 1e-9;
}

void describe_what(CLI::App& app, Options& o) {
  static const std::string kGroup = "What is measured";
  std::string names;
  for (const OperationInfo& each : operations()) names += std::string(each.name) + "|";
  add_value(app, {"operation", names + "all|p2p", "operations, separated by commas", kGroup},
            [&o](Text text) { o.operations = parse_operations(text); });
  add_value(
      app,
      {"--sizes", "SIZES",
       "1K:1G doubles, 1K:1G:x4, 1M:64M:+1M, 8,64K,1M; K M G are 1024 (default 1K:64M)", kGroup},
      [&o](Text text) { o.sizes = parse_sizes(text); });
  add_value(app, {"--dtype", "TYPES", "element types, or all (default float32)", kGroup},
            [&o](Text text) { o.types = parse_types(text); });
  add_value(app, {"--redop", "OPS", "reduction operators, or all (default sum)", kGroup},
            [&o](Text text) {
              o.all_redops = text == "all";
              if (!o.all_redops) o.redops = parse_list<Op>(text, "operator", op_named);
            });
  add_value(
      app,
      {"--root", "N|all|rotate",
       "root of rooted operations; rotate (default): the next rank for each operation", kGroup},
      [&o](Text text) {
        if (text == "all")
          o.root = kRootAll;
        else if (text == "rotate")
          o.root = kRootRotate;
        else
          o.root = static_cast<int>(cli::parse_number(text, 0, kMost));
      });
  add_choice(app, {"--in-place", "out|in|both", "out of place (default), in place", kGroup},
             o.in_place);
  add_choice(app,
             {"--memory", "plain|hcomm", "buffers from mmap (default) or hcommMemAlloc", kGroup},
             o.memory);
}

void describe_how(CLI::App& app, Options& o) {
  static const std::string kGroup = "How";
  add_value(
      app,
      {"--iters", "N", "take exactly N samples, instead of stopping by time and noise", kGroup},
      [&o](Text text) { o.rules.samples = cli::parse_number(text, 1, kMost); });
  add_value(app, {"--batch", "N", "operations of a sample (default: those of 0.2 to 1 ms)", kGroup},
            [&o](Text text) { o.rules.batch = cli::parse_number(text, 1, kMost); });
  add_value(app, {"--min-time", "TIME", "sample a row at least so long (default 200ms)", kGroup},
            [&o](Text text) { o.rules.min_time_s = seconds(text); });
  add_value(app, {"--max-time", "TIME", "and at most so long (default 2s)", kGroup},
            [&o](Text text) { o.rules.max_time_s = seconds(text); });
  add_value(app,
            {"--max-noise", "PERCENT",
             "stop when the 95 % interval of the median is within it (default 2%)", kGroup},
            [&o](Text text) { o.rules.max_noise = cli::parse_percent(text); });
  add_value(app, {"--warmup", "N", "operations before the first sample (default: 30 ms)", kGroup},
            [&o](Text text) { o.rules.warmup = cli::parse_number(text, 0, kMost); });
  add_choice(app,
             {"--check", "first|all|off",
              "verify one operation of each row (default), every one, none", kGroup},
             o.check);
  add_switch(
      app, {"--self-test", "", "spoil one byte of a result: the check must fail (exit 1)", kGroup},
      o.self_test);
  add_value(app,
            {"--hang-timeout", "TIME|off",
             "no progress for so long: say which rank is where, exit 4 (default 30s)", kGroup},
            [&o](Text text) { o.hang_ns = text == "off" ? 0 : parse_duration_ns(text); });
  add_value(
      app, {"--expect-size", "N", "refuse to run with another number of ranks", kGroup},
      [&o](Text text) { o.expect_size = static_cast<int>(cli::parse_number(text, 1, kMost)); });
  add_switch(app, {"--fit", "", "leave out sizes that memory cannot hold", kGroup}, o.fit);
  add_value(
      app,
      {"--delay", "RANK:TIME", "hold one rank back before each operation: a straggler", kGroup},
      [&o](Text text) {
        const size_t colon = text.find(':');
        if (colon == std::string::npos) fail(Code::invalid_argument, "'{}' is not RANK:TIME", text);
        o.delay.rank = static_cast<int>(cli::parse_number(text.substr(0, colon), 0, kMost));
        o.delay.time_ns = parse_duration_ns(text.substr(colon + 1));
      });
}

void describe_sweep(CLI::App& app, Options& o) {
  static const std::string kGroup = "The choice";
  auto* sweep = add_choice(
      app,
      {"--sweep", "algo|plan",
       "the choice beside every algorithm, forced, in turn; plan: each with its best tile and "
       "window",
       kGroup},
      o.sweep);
  add_value(
      app, {"--rounds", "N", "with --sweep: turns of each in a size (default 9)", kGroup},
      [&o](Text text) { o.rounds = static_cast<int>(cli::parse_number(text, 2, kMostRounds)); })
      ->needs(sweep);
}

void describe_output(CLI::App& app, Options& o) {
  static const std::string kGroup = "Output";
  cli::add_formats(
      app, {"--format", "table|json|ndjson|csv|md", "what is written (default table)", kGroup},
      o.format);
  add_value(app,
            {"-o,--output", "FILE",
             "write there, and the table to standard output; without a format its suffix decides",
             kGroup},
            [&o](Text text) { o.output = text; });
  add_switch(app, {"--per-iter", "", "every sample of each row", kGroup}, o.per_iter);
  add_switch(app, {"--timestamps", "", "when each row was done, in UTC", kGroup}, o.timestamps);
  add_value(
      app,
      {"--save", "FILE", "keep the rows to compare with later, when all is done and right", kGroup},
      [&o](Text text) { o.save = text; });
  add_value(app, {"--compare", "FILE", "show what is slower or faster than what was saved", kGroup},
            [&o](Text text) { o.compare = text; });
  add_value(
      app,
      {"--fail-if-slower", "PERCENT",
       "with --compare: exit 1 when a row is slower by more (and not by chance), 5 when no row "
       "could be compared",
       kGroup},
      [&o](Text text) { o.fail_if_slower = cli::parse_percent(text); });
  add_value(app,
            {"--peak", "FILE",
             "a column %peak: busbw by the limit that hcc-bench limits --json wrote there", kGroup},
            [&o](Text text) { o.peak = text; });
  add_choice(app, {"--explain", explain_topics(), "what a word of the table means", kGroup},
             o.explain);
}

// A sweep has a table of its own; what is for rows only is refused, not ignored.
void validate_sweep(const Options& o) {
  const std::pair<bool, std::string_view> others[] = {{o.check == "all", "--check all"},
                                                      {!o.compare.empty(), "--compare"},
                                                      {o.delay.rank >= 0, "--delay"},
                                                      {o.per_iter, "--per-iter"},
                                                      {!o.peak.empty(), "--peak"},
                                                      {!o.save.empty(), "--save"},
                                                      {o.self_test, "--self-test"},
                                                      {o.timestamps, "--timestamps"}};
  for (const auto& [given, name] : others)
    if (given) fail(Code::invalid_argument, "--sweep does not go with {}", name);
}

}  // namespace

void describe(CLI::App& app, Options& options) {
  cli::set_page(
      app,
      {.usage = "hcc-bench [OPTION]... OPERATION[,OPERATION]...",
       .examples = {{"hcc-launch -n 8 hcc-bench allreduce --sizes 1K:1G", ""},
                    {"hcc-launch -n 4 hcc-bench all --sizes 1K:64M:x4 --csv -o all.csv", ""},
                    {"hcc-launch -n 2 hcc-bench p2p --compare base.json --fail-if-slower 5%", ""},
                    {"hcc-bench compare --ranks 2 --sizes 4,64K,1M", "against MPI and others"}},
       .notes = {"A time is that of the slowest rank, the median of batches of operations. Sizes, "
                 "algbw and busbw are nccl-tests': --explain size, --explain busbw."},
       .environment = "HCOMM_*: hcc env lists them. NO_COLOR.",
       .exits =
           "0 done; 1 a check failed, a row is slower than --fail-if-slower allows, or --sweep "
           "found the choice worse than it may be; 2 usage; "
           "3 cannot run here; 4 hang or time-out; 5 no row could be compared; 130, 143 ended "
           "by a signal",
       .see_also = "hcc-launch(1), hcc(1), hcomm(7)"});
  describe_what(app, options);
  describe_how(app, options);
  describe_sweep(app, options);
  describe_output(app, options);
  cli::add_common(app, options.common, cli::version_line("hcc-bench"));
  compare::describe(
      *app.add_subcommand("compare", "HCOMM against other libraries, on this machine"),
      options.contest);
  interference::describe(
      *app.add_subcommand("interference", "how much an operation is held up by a large one"),
      options.interference);
  limits::describe(*app.add_subcommand("limits", "what this machine itself can do, at most"),
                   options.limits);
  overlap::describe(
      *app.add_subcommand("overlap", "how much of an operation hides behind a computation"),
      options.overlap);
}

void validate(Options& o) {
  if (!o.explain.empty()) return;
  if (o.operations.empty())
    fail(Code::invalid_argument, "which operation? e.g. hcc-bench allreduce");
  if (o.rules.max_time_s <= 0) fail(Code::invalid_argument, "--max-time: must be more than zero");
  if (o.rules.min_time_s > o.rules.max_time_s) o.rules.min_time_s = o.rules.max_time_s;
  if (o.self_test && o.check == "off")
    fail(Code::invalid_argument, "--self-test needs a check; leave out --check off");
  if (o.fail_if_slower && o.compare.empty())
    fail(Code::invalid_argument, "--fail-if-slower needs --compare FILE");
  if (!o.sweep.empty()) validate_sweep(o);
  if (o.sizes.empty()) o.sizes = parse_sizes("1K:64M");
  if (!o.format.empty()) return;
  for (const std::string_view suffix : {"json", "ndjson", "csv", "md"})
    if (o.output.ends_with(std::string(".") + std::string(suffix))) o.format = suffix;
}

}  // namespace hcomm::bench
