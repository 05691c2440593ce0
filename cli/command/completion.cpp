// SPDX-License-Identifier: Apache-2.0
// hcc completion: what a shell offers behind each tool's name, from the tools' option tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"
#include "hcc-bench/options.h"
#include "hcc-launch/options.h"

namespace hcomm::cli {

namespace {

class Completion : public Command {
 public:
  std::string_view name() const override { return "completion"; }
  std::string_view summary() const override { return "completions of all tools for a shell"; }

  void describe(CLI::App& app) override {
    set_page(app, {.usage = "hcc completion bash|zsh|fish",
                   .examples = {{"source <(hcc completion bash)", "this shell only"},
                                {"hcc completion fish > ~/.config/fish/completions/hcc.fish", ""}},
                   .exits = kExits});
    add_choice(app, {"shell", "bash|zsh|fish", "the shell"}, shell_)->required();
  }

  int run() override {
    const auto commands = make_commands();
    const auto hcc = make_hcc(commands);
    bench::Options bench_options;
    CLI::App bench_app("", "hcc-bench");
    bench::describe(bench_app, bench_options);
    launch::Options launch_options;
    CLI::App launch_app("", "hcc-launch");
    launch::describe(launch_app, launch_options);
    const CLI::App* const tools[] = {hcc.get(), &bench_app, &launch_app};
    const Shell shell = shell_ == "bash" ? Shell::bash : shell_ == "zsh" ? Shell::zsh : Shell::fish;
    fmt::print("{}", completion(tools, shell));
    return kDone;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace hcomm::cli
