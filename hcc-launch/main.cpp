// SPDX-License-Identifier: Apache-2.0
// hcc-launch: runs a job of several ranks on this host.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <span>

#include "base/config.h"
#include "base/error.h"
#include "cli/exit.h"
#include "cli/terminal.h"
#include "hcc-launch/front.h"
#include "hcc-launch/keeper.h"
#include "hcc-launch/options.h"
#include "hcc-launch/plan.h"

namespace hcomm::launch {

namespace {

void complain(std::string_view text) {
  cli::complain(fmt::format("hcc-launch: {}", text));
}

// 0, 1 and 2 are open from here on, so that no descriptor of ours takes their place.
void open_standard_streams() {
  while (true) {
    const int fd = open("/dev/null", O_RDWR);
    if (fd < 0 || fd > 2) {
      if (fd > 2) close(fd);
      return;
    }
  }
}

int print_text(std::string_view text) {
  return cli::show(text) ? 0 : kExitLauncher;
}

int run_job(char* process_name, const Options& options, const Job& job) {
  return run_guarded(process_name, [&](const Guard& guard) {
    try {
      return Front(options, job, guard).run();
    } catch (const Error& error) {
      complain(error.text());
      return error.code() == Code::invalid_argument ? cli::kUsage : kExitLauncher;
    } catch (const std::exception& error) {
      complain(error.what());
      return kExitLauncher;
    }
  });
}

int run(std::span<char*> arguments) {
  open_standard_streams();
  try {
    const Options options = parse_options(arguments.subspan(1));
    if (!options.print.empty()) return print_text(options.print);
    const auto warn = [&options](const std::string& text) {
      if (!options.common.quiet) complain(fmt::format("warning: {}", text));
    };
    const Job job = make_job(options, process_environment(), warn);
    if (options.dry_run) return print_text(describe(job));
    return run_job(arguments[0], options, job);
  } catch (const PlanFailure& failure) {
    complain(failure.text);
    return failure.exit_code;
  } catch (const Error& error) {
    complain(error.text());
    if (error.code() != Code::invalid_argument) return kExitLauncher;
    cli::complain("Try 'hcc-launch --help'.");
    return cli::kUsage;
  } catch (const std::exception& error) {
    complain(error.what());
    return kExitLauncher;
  }
}

}  // namespace

}  // namespace hcomm::launch

int main(int argc, char** argv) {
  return hcomm::launch::run({argv, static_cast<size_t>(argc)});
}
