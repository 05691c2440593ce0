// SPDX-License-Identifier: Apache-2.0
// A subcommand of hcc: its line in --help, its options, and what it does. One file a command
// (command/NAME.cpp, which defines make_NAME) and one line in commands.def.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace hcomm::cli {

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  virtual void describe(CLI::App& app) = 0;  // options and page; bound to this object
  virtual int run() = 0;                     // the exit code; may throw hcomm::Error
};

#define HCC_COMMAND(name) std::unique_ptr<Command> make_##name();
#include "cli/commands.def"
#undef HCC_COMMAND

// The whole option table of hcc. The commands must outlive it.
std::vector<std::unique_ptr<Command>> make_commands();
std::unique_ptr<CLI::App> make_hcc(const std::vector<std::unique_ptr<Command>>& commands);

}  // namespace hcomm::cli
