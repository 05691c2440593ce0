// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "hcc-bench/choice/heats.h"
#include "hcc-bench/choice/match.h"
#include "hcc-bench/choice/writer.h"
#include "hcc-bench/report/facts.h"

namespace hcomm::choice {

namespace {

using bench::Sweep;

// All that rank 0 writes. Ended once, also by the watchdog's thread while this one is stuck.
class Output {
 public:
  Output(const bench::Options& options, const bench::Facts& facts) {
    bench::Style style;
    style.quiet = options.common.quiet;
    if (!options.output.empty()) add(options.output, options.format, style);
    if (options.output.empty() || !options.common.quiet) {
      style.painter = cli::Painter(STDOUT_FILENO, options.common.color);
      add("", options.output.empty() ? options.format : "table", style);
    }
    for (const auto& writer : writers_) writer->begin(facts);
  }

  void cell(const Cell& cell) {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
    cells_.push_back(cell);
    for (const auto& writer : writers_) writer->cell(cell);
  }

  void end(const std::string& reason) {
    const std::unique_lock lock(mutex_, std::chrono::seconds(1));
    if (!lock || ended_) return;
    ended_ = true;
    for (const auto& writer : writers_) writer->end({tally(cells_), reason});
  }

  void give_up(const std::string& reason) noexcept {
    try {
      end(reason);
    } catch (const std::exception& error) {
      cli::complain(std::string("hcc-bench: ") + error.what());
    }
  }

 private:
  void add(const std::string& path, const std::string& format, const bench::Style& style) {
    sinks_.push_back(std::make_unique<bench::Sink>(path));
    writers_.push_back(choice::make_writer(format, *sinks_.back(), style));
  }

  std::vector<std::unique_ptr<bench::Sink>> sinks_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Cell> cells_;
  std::timed_mutex mutex_;
  bool ended_ = false;
};

// What would hide the choice, or cannot be done on a communicator split off.
void refuse_what_does_not_go(const std::vector<Sweep>& sweeps, const std::string& kind) {
  std::vector<std::string_view> outranking = {"HCOMM_ALGO"};
  if (kind == "plan") outranking = {"HCOMM_ALGO", "HCOMM_TILE", "HCOMM_WINDOW"};
  for (const std::string_view name : outranking)
    if (!cli::environment_value(name).empty())
      fail(Code::invalid_argument,
           "--sweep forces {0}s itself, and {1} would outrank it: unset {1}",
           kind == "plan" ? "plan" : "algorithm", name);
  for (const Sweep& sweep : sweeps)
    if (sweep.redop == Op::premul_sum)
      fail(Code::invalid_argument,
           "--sweep: premul_sum belongs to one communicator; choose other operators");
}

void tell(const bench::Session& session, const Cell& cell) {
  if (session.options.common.verbosity == 0 || session.world.rank() != 0) return;
  for (const Rival& rival : cell.rivals)
    cli::complain(fmt::format("hcc-bench: {} {}: {} {} us{}", cell.series.operation,
                              size_text(cell.bytes), rival.plan, cli::number_text(time_us(rival)),
                              rival.algorithm.empty() ? " (the choice)" : ""));
}

// All cells of all sweeps, as far as they come. The communicators of an operation serve all of its
// sweeps, where tile and window are the library's.
std::vector<Cell> measure_all(bench::Session& session, const std::vector<Sweep>& sweeps,
                              const std::function<void(const Cell&)>& done, bool& interrupted) {
  const bench::Buffers buffers(bench::capacity(sweeps, session.world.rank(), session.world.ranks()),
                               session.options.memory);
  const bool of_plans = session.options.sweep == "plan";
  uint64_t epoch = 1;
  std::vector<Cell> cells;
  std::vector<Contender> crowd;
  for (size_t i = 0; i < sweeps.size(); i++) {
    const Sweep& sweep = sweeps[i];
    if (!of_plans && (i == 0 || sweep.operation != sweeps[i - 1].operation)) {
      session.watchdog.at(fmt::format("{}, splitting", bench::info(sweep.operation).name), 0);
      crowd.clear();
      crowd = contenders(session.world, sweep.operation);
    }
    size_t before = SIZE_MAX;  // sizes that are rounded down may meet
    for (const size_t bytes : sweep.sizes) {
      Match match(session, sweep, buffers, bytes);
      if (match.bytes() == before) continue;
      before = match.bytes();
      if (of_plans) crowd = finalists(session, sweep, buffers, bytes);
      Cell cell = match.run(crowd, epoch);
      interrupted = match.interrupted();
      if (interrupted) return cells;
      if (done) done(cell);
      tell(session, cell);
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace

Result run(bench::World& world, const bench::Options& options, const std::vector<Sweep>& all,
           const std::atomic<int>& stop) {
  std::vector<Sweep> sweeps;
  std::copy_if(all.begin(), all.end(), std::back_inserter(sweeps),
               [](const Sweep& sweep) { return collective_of(sweep.operation).has_value(); });
  if (sweeps.empty())
    fail(Code::invalid_argument, "--sweep: {} has no algorithms to choose from",
         bench::info(options.operations[0]).name);
  refuse_what_does_not_go(sweeps, options.sweep);
  std::unique_ptr<Output> output;
  world.on_rank_0(
      [&] { output = std::make_unique<Output>(options, collect_facts(world, options)); });
  const auto give_up = [&](const std::string& reason) {
    if (output) output->give_up(reason);
  };
  bench::Watchdog watchdog(options.hang_ns, world.rank(), world.ranks(), [&] { give_up("hang"); });
  bench::Session session{world, options, watchdog, stop, {}};
  std::function<void(const Cell&)> done;
  if (output) done = [&](const Cell& cell) { output->cell(cell); };
  Result result;
  std::vector<Cell> cells;
  try {
    cells = measure_all(session, sweeps, done, result.interrupted);
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  if (output) output->end(result.interrupted ? "interrupted" : "");
  watchdog.at("the end", 0);
  for (const Cell& cell : cells) result.wrong += wrong(cell);
  result.reached = tally(cells).reached();
  return result;
}

}  // namespace hcomm::choice
