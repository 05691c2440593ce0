// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "hcc-bench/compare/build.h"
#include "hcc-bench/compare/contest.h"
#include "hcc-bench/compare/plot.h"
#include "hcc-bench/compare/writer.h"
#include "hcc-bench/measure/load.h"
#include "hcc-bench/measure/memory.h"
#include "hcc-bench/report/facts.h"

namespace hcomm::compare {

namespace {

using bench::Operation;

constexpr int64_t kLookMs = 300;
constexpr double kQuiet = 0.1;  // share of the cores that may be busy before we begin

// All that is written.
class Output {
 public:
  explicit Output(const Options& options) : options_(options) {
    bench::Style style;
    style.quiet = options.common.quiet;
    bench::Facts facts = bench::machine_facts();
    facts.memory = options.memory;
    facts.busy = bench::busy_share(kLookMs);
    if (facts.busy.value_or(0) > kQuiet)
      cli::complain(
          fmt::format("hcc-bench: other programs keep {:.0f} % of the cores busy: the "
                      "times will be noisy, above all where ranks share cores",
                      *facts.busy * 100));
    if (!options.plot.empty()) plot_ = std::make_unique<bench::Sink>(options.plot);
    if (!options.output.empty()) add(options.output, options.format, style);
    if (options.output.empty() || !options.common.quiet) {
      style.painter = cli::Painter(STDOUT_FILENO, options.common.color);
      add("", options.output.empty() ? options.format : "table", style);
    }
    for (const auto& writer : writers_) writer->begin(facts);
  }

  void cell(Cell cell) {
    for (const auto& writer : writers_) writer->cell(cell);
    cells_.push_back(std::move(cell));
  }

  void end(const std::string& reason) {
    for (const auto& writer : writers_) writer->end({summaries(cells_), reason});
    if (plot_) plot_->write(plot(cells_));
  }

  // HCOMM was wrong, or failed, somewhere.
  bool faulty() const {
    return std::any_of(cells_.begin(), cells_.end(), [](const Cell& cell) {
      return cell.series[0].wrong() || !cell.series[0].error.empty();
    });
  }

 private:
  void add(const std::string& path, const std::string& format, const bench::Style& style) {
    sinks_.push_back(std::make_unique<bench::Sink>(path));
    writers_.push_back(compare::make_writer(format, *sinks_.back(), style));
  }

  const Options& options_;
  std::unique_ptr<bench::Sink> plot_;
  std::vector<std::unique_ptr<bench::Sink>> sinks_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Cell> cells_;
};

void tell(const Options& options, const std::string& text) {
  if (!options.common.quiet) cli::complain("hcc-bench: " + text);
}

// What is not there is a note where nobody asked for it, and an error where somebody did.
enum class Wish : uint8_t { whatever_is_there, named };

void add_peer(const Options& options, const Finding& finding, const std::string& name, Wish wish,
              std::vector<Contender>& list) {
  const auto absent = [&](const std::string& reason) {
    if (wish == Wish::named) fail(Code::unavailable, "{}: {}", name, reason);
    tell(options, fmt::format("left out {}: {}", name, reason));
  };
  if (finding.subjects.empty()) return absent(finding.reason);
  for (const Subject& subject : finding.subjects) {
    try {
      list.push_back({subject, build_driver(subject, driver_folder(), cache_folder())});
    } catch (const Error& error) {
      absent(error.text());
    }
  }
}

void add_prefix(const Options& options, const std::string& prefix, std::vector<Contender>& list) {
  const size_t before = list.size();
  std::string reasons;
  for (const std::string& name : peer_names()) {
    const Finding finding = find_peer(name, prefix);
    if (!finding.subjects.empty())
      add_peer(options, finding, finding.subjects[0].name, Wish::named, list);
    else
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, finding.reason);
  }
  if (list.size() == before) fail(Code::unavailable, "no peer in {}: {}", prefix, reasons);
}

std::vector<Contender> find_all(const Options& options) {
  std::vector<Contender> list = {{hcomm_subject(), ""}};
  for (const std::string& wanted : options.peers) {
    if (wanted == "none") continue;
    const bool all = wanted == "auto";
    for (const std::string& name : all ? peer_names() : std::vector<std::string>{wanted})
      add_peer(options, find_peer(name, ""), name, all ? Wish::whatever_is_there : Wish::named,
               list);
  }
  for (const std::string& prefix : options.prefixes) add_prefix(options, prefix, list);
  return list;
}

struct Point {
  Operation operation;
  size_t bytes;
};

// Two buffers a rank, and what a library takes beside them.
bool fits(size_t bytes, int ranks) {
  const double needed = 2.5 * static_cast<double>(bytes) * ranks + 256.0 * kMiB;
  return needed < static_cast<double>(bench::available_bytes());
}

std::vector<Point> points(const Options& options, int ranks) {
  std::vector<Point> list;
  for (const Operation operation : options.operations) {
    if (operation == Operation::ping_pong && ranks != 2) continue;
    if (operation == Operation::barrier) {
      list.push_back({operation, 0});
      continue;
    }
    for (const size_t bytes : options.sizes)
      if (fits(bytes, ranks)) list.push_back({operation, bytes});
  }
  for (const size_t bytes : options.sizes)
    if (!fits(bytes, ranks))
      tell(options, fmt::format("left out {} with {} ranks: memory", size_text(bytes), ranks));
  return list;
}

void run_group(const Options& options, std::span<const Contender> contenders,
               const std::string& transport, int ranks, const std::atomic<int>& stop,
               Output& output) {
  tell(options, fmt::format("{} ranks over {}", ranks, transport));
  Contest contest(contenders, transport, ranks, options, stop);
  for (const Point& point : points(options, ranks)) {
    Cell cell = contest.measure(point.operation, point.bytes);
    if (contest.stopped()) return;
    output.cell(std::move(cell));
  }
}

}  // namespace

int run(const Options& options, const std::atomic<int>& stop) {
  const std::vector<Contender> contenders = find_all(options);
  Output output(options);
  try {
    for (const std::string& transport : options.transports)
      for (const int ranks : options.ranks)
        if (stop.load() == 0) run_group(options, contenders, transport, ranks, stop, output);
  } catch (const Error& error) {
    if (stop.load() == 0) {
      output.end(error.text());
      throw;
    }
  }
  if (stop.load() != 0) {
    output.end("interrupted");
    return stop.load() == SIGTERM ? cli::kTerminated : cli::kInterrupted;
  }
  output.end("");
  return output.faulty() ? cli::kProblem : cli::kDone;
}

}  // namespace hcomm::compare
