// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>

#include "cli/options.h"
#include "cli/version.h"

namespace hcomm::cli {

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
#define HCC_COMMAND(name) commands.push_back(make_##name());
#include "cli/commands.def"
#undef HCC_COMMAND
  return commands;
}

std::unique_ptr<CLI::App> make_hcc(const std::vector<std::unique_ptr<Command>>& commands) {
  auto app = std::make_unique<CLI::App>(
      "HCOMM: one communicator for any devices. What is installed, how it is set, what it would "
      "do.",
      "hcc");
  set_page(*app, {.usage = "hcc COMMAND [OPTION]...",
                  .examples = {{"hcc-launch -n 8 hcc-bench allreduce --sizes 1K:1G",
                                "eight processes of this host, checked and timed"},
                               {"hcc plan allreduce --ranks 8 --size 1M --check",
                                "which algorithm would run, why, and a proof that it is right"},
                               {"hcc env --changed", "settings that differ from their defaults"}},
                  .environment = "HCOMM_*: hcc env.",
                  .exits = kExits,
                  .see_also = "hcc-launch(1), hcc-bench(1), hcomm(7), policy.conf(5)"});
  app->set_help_flag("-h,--help", "print this help and exit")->group("General");
  app->set_version_flag("--version", version_line("hcc"), "print the version and exit")
      ->group("General");
  for (const auto& command : commands) {
    CLI::App* sub =
        app->add_subcommand(std::string(command->name()), std::string(command->summary()));
    sub->set_help_flag("-h,--help", "print this help and exit")->group("General");
    command->describe(*sub);
  }
  app->require_subcommand(0, 1);
  return app;
}

}  // namespace hcomm::cli
