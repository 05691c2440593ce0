// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/version.h"
#include "cli/words.h"
#include "hcc-bench/peers/data.h"
#include "hcc-bench/sizes.h"

namespace hcomm::compare {

namespace {

using bench::Operation;
using cli::add_choice;
using cli::add_value;
using cli::parse_words;
using Text = const std::string&;

constexpr int64_t kMostRanks = 64;
constexpr size_t kLargest = 4 * kGiB;  // MPI counts elements in an int

std::vector<Operation> parse_comparable(Text text) {
  const std::vector<Operation> known = comparable_operations();
  if (text == "all") return known;
  std::vector<Operation> list = bench::parse_operations(text);
  for (const Operation operation : list)
    if (std::find(known.begin(), known.end(), operation) == known.end())
      fail(Code::invalid_argument, "not every library has {}", bench::info(operation).name);
  return list;
}

void describe_whom(CLI::App& app, Options& o) {
  static const std::string kGroup = "With whom";
  add_value(
      app,
      {"--peers", "auto|none|openmpi|mpich|gloo|torch|ucc",
       "libraries, separated by commas; auto (default): those that are found here", kGroup},
      [&o](Text text) {
        o.peers = parse_words(text, {"auto", "none", "openmpi", "mpich", "gloo", "torch", "ucc"});
      });
  app.add_option_function<std::vector<std::string>>(
         "--peer-prefix", [&o](const std::vector<std::string>& list) { o.prefixes = list; },
         "also the peer that is installed there; may be repeated")
      ->type_name("DIR")
      ->expected(1)
      ->group(kGroup)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void describe_what(CLI::App& app, Options& o) {
  static const std::string kGroup = "What is compared";
  add_value(app,
            {"--collectives", "NAMES", "operations, separated by commas (default all)", kGroup},
            [&o](Text text) { o.operations = parse_comparable(text); });
  add_value(app, {"--ranks", "LIST", "numbers of ranks (default 2,4,8)", kGroup}, [&o](Text text) {
    o.ranks.clear();
    for (const std::string_view word : split_list(text))
      o.ranks.push_back(static_cast<int>(cli::parse_number(word, 2, kMostRanks)));
    if (o.ranks.empty()) fail(Code::invalid_argument, "an empty list");
  });
  add_value(app,
            {"--sizes", "SIZES",
             "as of hcc-bench: 1K:1G:x4, or a list (default 4,1K,64K,1M,16M,256M)", kGroup},
            [&o](Text text) { o.sizes = bench::parse_sizes(text); });
  add_value(app, {"--transport", "shm|tcp", "one, or both with a comma (default shm,tcp)", kGroup},
            [&o](Text text) {
              o.transports = parse_words(text, {"shm", "tcp"});
            });
  add_choice(
      app,
      {"--memory", "plain|hcomm", "HCOMM's buffers from mmap (default) or hcommMemAlloc", kGroup},
      o.memory);
}

void describe_how(CLI::App& app, Options& o) {
  static const std::string kGroup = "How";
  add_value(
      app,
      {"--rounds", "N", "times that all libraries take their turn in a cell (default 5)", kGroup},
      [&o](Text text) { o.rounds = static_cast<int>(cli::parse_number(text, 1, 1000)); });
  add_value(app, {"--budget", "TIME", "sample so long in each turn (default 100ms)", kGroup},
            [&o](Text text) { o.budget_s = static_cast<double>(parse_duration_ns(text)) * 1e-9; });
  add_value(app,
            {"--hang-timeout", "TIME",
             "a turn may take so long, and more for large sizes (default 30s)", kGroup},
            [&o](Text text) { o.hang_s = static_cast<double>(parse_duration_ns(text)) * 1e-9; });
}

void describe_output(CLI::App& app, Options& o) {
  static const std::string kGroup = "Output";
  cli::add_formats(
      app, {"--format", "table|json|csv|md", "what is written (default table)", kGroup}, o.format);
  add_value(app,
            {"-o,--output", "FILE",
             "write there, and the table to standard output; without a format its suffix decides",
             kGroup},
            [&o](Text text) { o.output = text; });
  add_value(app, {"--plot", "FILE", "draw time over size there, as SVG", kGroup},
            [&o](Text text) { o.plot = text; });
}

}  // namespace

std::vector<Operation> comparable_operations() {
  std::vector<Operation> list;
  for (const char* name : peer_kind_names) list.push_back(bench::parse_operations(name).front());
  return list;
}

void describe(CLI::App& app, Options& options) {
  cli::set_page(
      app,
      {.usage = "hcc-bench compare [OPTION]...",
       .examples = {{"hcc-bench compare", "all that is found here, the whole grid: an hour or two"},
                    {"hcc-bench compare --ranks 2 --sizes 4,64K,1M --collectives allreduce", ""},
                    {"hcc-bench compare --peer-prefix /opt/openmpi --csv -o grid.csv", ""}},
       .notes = {"Each library runs all of its ranks on this machine, and they take turns in every "
                 "cell: float32, sum, out of place (torch, where it can, in place), checked; time "
                 "of the slowest rank. A cell belongs to the best peer in it. Rows say whether "
                 "the cores of ranks 0 and 1 were near (one cache) or far; only turns of one state "
                 "are compared. lost: the 95 % interval of the ratio lies above 1.05."},
       .environment = "HCOMM_*: hcc env lists them. XDG_CACHE_HOME, NO_COLOR.",
       .exits = "0 done; 1 HCOMM was wrong or failed; 2 usage; 3 cannot run here, or a peer that "
                "was named is not there; 130, 143 ended by a signal",
       .files = "$XDG_CACHE_HOME/hcomm/peers: the peers' drivers, built at first use",
       .see_also = "hcc-launch(1), hcc(1), hcomm(7)"});
  describe_whom(app, options);
  describe_what(app, options);
  describe_how(app, options);
  describe_output(app, options);
  cli::add_common(app, options.common, cli::version_line("hcc-bench"));
}

void validate(Options& o) {
  if (o.operations.empty()) o.operations = comparable_operations();
  if (o.sizes.empty()) o.sizes = bench::parse_sizes("4,1K,64K,1M,16M,256M");
  for (const size_t size : o.sizes)
    if (size < sizeof(float) || size > kLargest)
      fail(Code::invalid_argument, "--sizes: {} is not within an element of 4 bytes and {}",
           size_text(size), size_text(kLargest));
  if (o.budget_s <= 0) fail(Code::invalid_argument, "--budget: must be more than zero");
  if (o.hang_s <= 0) fail(Code::invalid_argument, "--hang-timeout: must be more than zero");
  if (!o.format.empty()) return;
  for (const std::string_view suffix : {"json", "csv", "md"})
    if (o.output.ends_with(std::string(".") + std::string(suffix))) o.format = suffix;
}

}  // namespace hcomm::compare
