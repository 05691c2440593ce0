// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/limits/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/version.h"

namespace hcomm::bench::limits {

namespace {

using Text = const std::string&;

std::vector<std::string_view> parse_sections(Text text) {
  std::vector<std::string_view> chosen;
  const std::vector<std::string> known(std::begin(kSections), std::end(kSections));
  for (const std::string_view word : split_list(text)) {
    const auto* const found = std::find(std::begin(kSections), std::end(kSections), word);
    if (found == std::end(kSections))
      fail(Code::invalid_argument, "'{}' is not one of {}{}", word, fmt::join(kSections, ", "),
           cli::did_you_mean(std::string(word), known));
    chosen.push_back(*found);
  }
  if (chosen.empty()) fail(Code::invalid_argument, "no section is named");
  return chosen;
}

}  // namespace

void describe(CLI::App& app, Options& o) {
  static const std::string kHow = "How", kOutput = "Output";
  cli::set_page(
      app,
      {.usage = "hcc-bench limits [OPTION]...",
       .examples = {{"hcc-bench limits", "the table, in less than 20 s on a quiet machine"},
                    {"hcc-bench limits --json -o limits.json",
                     "for hcc-bench allreduce --peak limits.json"}},
       .notes = {"Nothing of HCOMM is timed but its kernels. The processes are this command's own, "
                 "each on a core. Times are the least and the median of what was sampled, of the "
                 "slowest process; GB/s are 1e9 bytes of one buffer a second, from the least. With "
                 "one core, what takes two is absent."},
       .environment = "NO_COLOR.",
       .exits = "0 done; 2 usage; 3 cannot run here; 4 a measurement took too long",
       .see_also = "hcc-bench(1)"});
  cli::add_value(
      app,
      {"--sections", "LIST",
       fmt::format("some of {}, separated by commas (default: all)", fmt::join(kSections, ", ")),
       kHow},
      [&o](Text text) { o.sections = parse_sections(text); });
  cli::add_value(
      app, {"--min-time", "TIME", "sample each limit at least so long (default 50ms)", kHow},
      [&o](Text text) { o.min_time_s = static_cast<double>(parse_duration_ns(text)) * 1e-9; });
  cli::add_formats(
      app, {"--format", "table|json|csv|md", "what is written (default table)", kOutput}, o.format);
  cli::add_value(
      app,
      {"-o,--output", "FILE",
       "write there, and the table to standard output; without a format its suffix decides",
       kOutput},
      [&o](Text text) { o.output = text; });
  cli::add_common(app, o.common, cli::version_line("hcc-bench"));
}

}  // namespace hcomm::bench::limits
