// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/interference/options.h"

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/version.h"
#include "hcc-bench/sizes.h"

namespace hcomm::bench::interference {

namespace {

using cli::add_value;
using Text = const std::string&;

constexpr int64_t kLeastSamples = 100, kMostSamples = 1'000'000;  // the 99th percentile needs 100

Operation parse_one(Text text) {
  const std::vector<Operation> list = parse_operations(text);
  if (list.size() != 1 || list[0] == Operation::startup || list[0] == Operation::ping_pong)
    fail(Code::invalid_argument, "one operation that is one call, not {}", text);
  return list[0];
}

size_t parse_load(Text text) {
  const std::vector<size_t> sizes = parse_sizes(text);
  if (sizes.size() != 1 || sizes[0] < 4) fail(Code::invalid_argument, "one size of 4 B and more");
  return sizes[0];
}

void describe_how(CLI::App& app, Options& o) {
  static const std::string kHow = "How";
  add_value(app,
            {"--operation", "NAME", "what is held up, as of hcc-bench (default allreduce)", kHow},
            [&o](Text text) { o.operation = parse_one(text); });
  add_value(app, {"--sizes", "SIZES", "of it, as of hcc-bench (default 64K)", kHow},
            [&o](Text text) { o.sizes = parse_sizes(text); });
  add_value(app, {"--load", "SIZE", "of the all-reduce behind it (default 16M)", kHow},
            [&o](Text text) { o.load = parse_load(text); });
  add_value(app,
            {"--every", "TIME", "from the end of one operation to the next (default 1ms)", kHow},
            [&o](Text text) { o.every_ns = parse_duration_ns(text); });
  add_value(app, {"--samples", "N", "operations of each kind, 100 and more (default 300)", kHow},
            [&o](Text text) { o.samples = cli::parse_number(text, kLeastSamples, kMostSamples); });
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
      {.usage = "hcc-bench interference [OPTION]...",
       .examples = {{"hcc-launch -n 4 hcc-bench interference", "64 KiB beside 16 MiB"},
                    {"hcc-launch -n 4 hcc-bench interference --sizes 4K,64K --load 256M", ""}},
       .notes = {"How much an operation is held up by a large all-reduce that is always under way "
                 "on the same ranks: gradients beside activations. The operation runs on a virtual "
                 "communicator, every --every, alone and under load in turn; the load on another "
                 "one (hcommCommVirtual). ordered: the operation's communicator has the higher "
                 "priority; equal: both have the same. Times are of the slowest rank; every result "
                 "is checked."},
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

}  // namespace hcomm::bench::interference
