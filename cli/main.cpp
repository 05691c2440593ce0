// SPDX-License-Identifier: Apache-2.0
// hcc: the umbrella command.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"

int main(int argc, char** argv) {
  using namespace hcomm::cli;
  const auto commands = make_commands();
  const auto app = make_hcc(commands);
  if (const auto code = parse(*app, argc, argv)) return *code;
  const int code = guarded("hcc", [&]() -> int {
    for (const auto& command : commands)
      if (app->got_subcommand(std::string(command->name()))) return command->run();
    return show(help_text(*app)) ? kDone : kCannotRun;
  });
  return std::fflush(stdout) == 0 || code != kDone ? code : kCannotRun;
}
