// SPDX-License-Identifier: Apache-2.0
// hcc-bench: how long HCOMM's operations take, and whether what they give is right.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "hcc-bench/choice/run.h"
#include "hcc-bench/compare/run.h"
#include "hcc-bench/compare/serve.h"
#include "hcc-bench/explain.h"
#include "hcc-bench/interference/run.h"
#include "hcc-bench/limits/run.h"
#include "hcc-bench/options.h"
#include "hcc-bench/overlap/run.h"
#include "hcc-bench/report/facts.h"
#include "hcc-bench/report/output.h"
#include "hcc-bench/run.h"

namespace {

using namespace hcomm;
using namespace hcomm::bench;

std::atomic<int> g_stop{0};  // the signal that asked to stop

void on_signal(int signal) {
  g_stop.store(signal, std::memory_order_relaxed);
}

// The first SIGINT or SIGTERM ends the run at the next point where all ranks agree; the second one
// ends the process.
void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int signal_exit() {
  return g_stop.load() == SIGTERM ? cli::kTerminated : cli::kInterrupted;
}

// All ranks find the same fault in a command line; rank 0 tells it. The others leave later, so that
// a launcher that ends the job at the first exit does not cut rank 0 short.
int leave_to_rank_0(int code) {
  usleep(300'000);
  return code;
}

int outcome_code(const Options& options, const Outcome& outcome, Gate gate) {
  if (outcome.interrupted) return signal_exit();
  if (options.self_test && outcome.wrong == 0) {
    cli::complain("hcc-bench: self-test: the spoiled byte was not seen; the check is broken");
    return cli::kCannotRun;
  }
  if (outcome.wrong > 0 || gate == Gate::slower) return cli::kProblem;
  return gate == Gate::undecided ? cli::kUndecided : cli::kDone;
}

int sweep_code(const choice::Result& result) {
  if (result.interrupted) return signal_exit();
  return result.wrong > 0 || !result.reached ? cli::kProblem : cli::kDone;
}

int measure(const Options& options, World& world) {
  if (options.expect_size > 0 && options.expect_size != world.ranks())
    fail(Code::unavailable, "--expect-size {}: the communicator has {} ranks", options.expect_size,
         world.ranks());
  std::vector<Sweep> list = sweeps(options, world.ranks());
  fit_to_memory(world, list, options.fit ? TooLarge::leave_out : TooLarge::refuse);
  if (!options.sweep.empty()) return sweep_code(choice::run(world, options, list, g_stop));
  std::unique_ptr<Output> output;
  world.on_rank_0(
      [&] { output = std::make_unique<Output>(options, collect_facts(world, options)); });
  const auto give_up = [&](const std::string& reason) {
    if (output) output->give_up(reason);
  };
  Watchdog watchdog(options.hang_ns, world.rank(), world.ranks(), [&] { give_up("hang"); });
  Outlet outlet;
  if (output) {
    outlet.row = [&](const Row& row) { output->row(row); };
    outlet.series_end = [&](const std::vector<Row>& rows) { output->series_end(rows); };
  }
  Session session{world, options, watchdog, g_stop, outlet};
  Outcome outcome;
  try {
    outcome = run_sweeps(session, list);
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  if (output) output->end(outcome.interrupted ? "interrupted" : "");
  watchdog.at("the end", 0);
  return outcome_code(options, outcome, output ? output->settle_base() : Gate::holds);
}

int plain_code(const Outcome& outcome) {
  if (outcome.interrupted) return signal_exit();
  return outcome.wrong > 0 ? cli::kProblem : cli::kDone;
}

int measure_interference(const Options& options, World& world) {
  return plain_code(interference::run(world, options.interference, g_stop));
}

int measure_overlap(const Options& options, World& world) {
  return plain_code(overlap::run(world, options.overlap, g_stop));
}

// Joins the job and measures; of a failure all ranks tell, or rank 0 where it is one of all.
int run_all(const Options& options, int (*measurement)(const Options&, World&)) {
  catch_signals();
  std::unique_ptr<World> world;
  try {
    world = std::make_unique<World>();
    return measurement(options, *world);
  } catch (const Error& error) {
    const int rank = world ? world->rank() : std::max(0, launched_rank());
    if (error.code() == Code::invalid_argument && rank != 0) {
      world.reset();  // rank 0's leaving waits for it
      return leave_to_rank_0(cli::kUsage);
    }
    if (g_stop.load() != 0) return signal_exit();
    const bool alone = world ? world->ranks() == 1 : launched_rank() < 0;
    if (error.code() == Code::invalid_argument || alone) throw;
    fail(error.code(), "rank {}: {}", rank, error.text());
  }
}

int run_compare(Options& options) {
  std::string from;
  if (launched_size(from) > 1) {
    if (launched_rank() > 0) return leave_to_rank_0(cli::kUsage);
    fail(Code::invalid_argument, "compare starts its ranks itself: run it without a launcher ({})",
         from);
  }
  compare::validate(options.contest);
  catch_signals();
  return compare::run(options.contest, g_stop);
}

// What is no operation, but stands in its place: `hcc-bench NAME [OPTION]...`, run by all ranks of
// a launcher or by a process alone.
enum class By : uint8_t { one, all_ranks };
constexpr struct {
  const char* name;
  By by;
  int (*run)(Options&);
} kCommands[] = {
    {"compare", By::one, run_compare},
    {"interference", By::all_ranks,
     [](Options& options) { return run_all(options, measure_interference); }},
    {"limits", By::one, [](Options& options) { return limits::run(options.limits); }},
    {"overlap", By::all_ranks, [](Options& options) { return run_all(options, measure_overlap); }},
};

}  // namespace

int main(int argc, char** argv) {
  // Not in the table: only `hcc-bench compare` starts it.
  if (argc > 1 && std::string_view(argv[1]) == "serve") return compare::serve(argc - 1, argv + 1);
  Options options;
  CLI::App app(
      "Measures the operations of HCOMM: time, bandwidth, and whether the results are right.",
      "hcc-bench");
  describe(app, options);
  const bool speaks = launched_rank() <= 0;
  if (const auto code =
          cli::parse(app, argc, argv, speaks ? cli::Voice::aloud : cli::Voice::silent))
    return speaks ? *code : leave_to_rank_0(*code);
  return cli::guarded("hcc-bench", [&]() -> int {
    for (const auto& command : kCommands) {
      if (!app.got_subcommand(command.name)) continue;
      const bool first = std::string_view(argv[1]) == command.name;
      if (!speaks && (!first || command.by == By::one)) return leave_to_rank_0(cli::kUsage);
      if (!first)
        fail(Code::invalid_argument, "{0} comes first: hcc-bench {0} [OPTION]...", command.name);
      return command.run(options);
    }
    try {
      validate(options);
    } catch (const Error&) {
      if (!speaks) return leave_to_rank_0(cli::kUsage);
      throw;
    }
    if (!options.explain.empty()) {
      return !speaks || cli::show(explain(options.explain)) ? cli::kDone : cli::kCannotRun;
    }
    return run_all(options, measure);
  });
}
