// SPDX-License-Identifier: Apache-2.0
// hcc tune: measures the links of this node and every plan of its collectives, and writes rules of
// policy.conf where the cost model's choice is not the best.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/tune/fragment.h"
#include "cli/tune/output.h"
#include "cli/tune/session.h"
#include "cli/version.h"
#include "cli/words.h"
#include "hcc-bench/operation.h"
#include "hcc-bench/sizes.h"
#include "policy/rules.h"

namespace hcomm::cli {

namespace {

using Text = const std::string&;

constexpr int64_t kMostRanks = 256;
constexpr int64_t kLeastJob_ms = 5'000;

std::atomic<int> g_stop{0};

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { g_stop.store(signal, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Operations that rules can speak of: collectives whose size all ranks know.
std::vector<std::string> tunable() {
  std::vector<std::string> names;
  for (const bench::OperationInfo& each : bench::operations())
    if (policy::collective_named(each.call)) names.emplace_back(each.name);
  return names;
}

std::vector<std::string> parse_collectives(Text text) {
  const std::vector<std::string> known = tunable();
  std::vector<std::string> names;
  for (const bench::Operation operation : bench::parse_operations(text)) {
    const std::string name(bench::info(operation).name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(Code::invalid_argument, "'{}' is not one of {}", name, fmt::join(known, ", "));
    names.push_back(name);
  }
  return names;
}

std::vector<uint32_t> parse_ranks(Text text) {
  std::vector<uint32_t> list;
  for (const std::string_view word : split_list(text)) {
    const auto ranks = static_cast<uint32_t>(parse_number(word, 2, kMostRanks));
    if (std::find(list.begin(), list.end(), ranks) == list.end()) list.push_back(ranks);
  }
  if (list.empty()) fail(Code::invalid_argument, "an empty list");
  return list;
}

// Powers of two, as many as there are cores, and twice as many.
std::vector<uint32_t> usual_ranks() {
  std::vector<uint32_t> list{2};
  while (list.back() < 2 * usable_cores() && list.back() < 64) list.push_back(2 * list.back());
  return list;
}

class Tune : public Command {
 public:
  std::string_view name() const override { return "tune"; }
  std::string_view summary() const override {
    return "measures this node; writes rules where another plan beats the choice";
  }

  void describe(CLI::App& app) override {
    set_page(app,
             {.usage = "hcc tune [OPTION]...",
              .examples = {{"hcc tune --time 5m -o tuned.conf", "then HCOMM_POLICY=tuned.conf"},
                           {"hcc tune --ranks 2 --collectives allreduce --transport shm", ""},
                           {"hcc tune --dry-run", "what would be run, and for how long"}},
              .notes = {"Runs hcc-bench on this node, for all ranks over one transport after "
                        "the other. The result is a fragment of policy.conf: a rule for each "
                        "range of sizes in which a plan is surely more than 5 % faster than "
                        "what the cost model chooses."},
              .environment = "HCOMM_* count, but for those that name plans or transports.",
              .exits = "0 done; 2 usage; 3 cannot run here; 4 a measurement took too long; "
                       "130, 143 ended by a signal",
              .see_also = "hcc-bench(1), policy.conf(5)"});
    describe_what(app);
    describe_output(app);
  }

  int run() override {
    const tune::Programs programs = tune::find_programs();
    if (dry_run_) return show_plan(programs);
    output_.existing = force_ ? tune::Existing::overwrite : tune::Existing::keep;
    output_.check();
    catch_signals();
    try {
      const tune::Measured measured = measure(programs);
      const tune::Origin origin{version_line("hcc"), host_name(), utc_text(wall_ns())};
      output_.write(json_ ? json_pretty(document_json(measured, origin))
                          : fragment(measured, origin));
      if (output_.path != "-" && !quiet_) show(machine_text(measured));
      return kDone;
    } catch (const Error& error) {
      if (error.code() != Code::aborted) throw;
      complain("hcc tune: stopped; nothing is written");
      return g_stop.load() == SIGTERM ? kTerminated : kInterrupted;
    }
  }

 private:
  void describe_what(CLI::App& app) {
    static const std::string kGroup = "What is measured";
    wanted_ = {usual_ranks(), tunable(), {"shm", "tcp"}, bench::parse_sizes("4:16M:x4"), 0};
    wanted_.time_ns = parse_duration_ns("10m");
    add_value(app,
              {"--ranks", "LIST", "numbers of ranks (default: 2, 4 to twice the cores)", kGroup},
              [this](Text text) { wanted_.ranks = parse_ranks(text); });
    add_value(app, {"--collectives", "LIST", "as hcc-bench calls them (default: all)", kGroup},
              [this](Text text) { wanted_.operations = parse_collectives(text); });
    add_value(app, {"--sizes", "SIZES", "as of hcc-bench (default 4:16M:x4)", kGroup},
              [this](Text text) {
                wanted_.sizes = bench::parse_sizes(text);
                std::sort(wanted_.sizes.begin(), wanted_.sizes.end());
              });
    add_value(app, {"--transport", "LIST", "shm, tcp (default: both)", kGroup}, [this](Text text) {
      wanted_.transports = parse_words(text, {"shm", "tcp"});
    });
    add_value(app, {"--time", "TIME", "about how long, in all (default 10m)", kGroup},
              [this](Text text) {
                wanted_.time_ns = parse_duration_ns(text);
                if (wanted_.time_ns <= 0) fail(Code::invalid_argument, "must be more than zero");
              });
    add_switch(app, {"--dry-run", "", "print what would be run, and run nothing", kGroup},
               dry_run_);
  }

  void describe_output(CLI::App& app) {
    static const std::string kGroup = "Output";
    add_value(app, {"-o,--output", "FILE", "write there (default -: standard output)", kGroup},
              [this](Text text) { output_.path = text; });
    add_switch(app, {"--force", "", "overwrite the file", kGroup}, force_);
    add_switch(app, {"--json", "", "all cells and the rules, as JSON", kGroup}, json_);
    add_switch(app, {"-q,--quiet", "", "results and errors only", kGroup}, quiet_);
  }

  int show_plan(const tune::Programs& programs) const {
    const std::vector<tune::Job> jobs = jobs_of(wanted_);
    std::string text = fmt::format(
        "# {} job{} of {} size{}, {} ms for each plan of a size; {} s in all\n", jobs.size(),
        jobs.size() == 1 ? "" : "s", wanted_.sizes.size(), wanted_.sizes.size() == 1 ? "" : "s",
        time_of_plan_ns(wanted_) / 1'000'000, wanted_.time_ns / 1'000'000'000);
    for (const tune::Job& job : jobs)
      text += fmt::format("HCOMM_TRANSPORT={} {}\n", job.transport,
                          fmt::join(command_of(programs, wanted_, job), " "));
    return show(text) ? kDone : kCannotRun;
  }

  tune::Measured measure(const tune::Programs& programs) const {
    const Deadline end = Deadline::after_ms(std::max<int64_t>(1, wanted_.time_ns / 1'000'000));
    tune::Session session(programs, g_stop);
    tune::Measured measured;
    for (const std::string& transport : wanted_.transports)
      measured.links.push_back(session.link(transport));
    measured.work = session.work();
    const std::vector<tune::Job> jobs = jobs_of(wanted_);
    size_t cut = 0;
    for (size_t i = 0; i < jobs.size(); i++) {
      if (!quiet_)
        complain(fmt::format("hcc tune: {}, {} ranks, {} ({} of {})", jobs[i].operation,
                             jobs[i].ranks, jobs[i].transport, i + 1, jobs.size()));
      // What one does not need is the others'.
      const int64_t share_ms = end.left_ms() / static_cast<int64_t>(jobs.size() - i);
      tune::Session::Cells cells =
          session.cells(wanted_, jobs[i], Deadline::after_ms(std::max(share_ms, kLeastJob_ms)));
      if (!cells.complete) cut++;
      measured.cells.insert(measured.cells.end(), cells.list.begin(), cells.list.end());
    }
    if (cut > 0)
      measured.left_out =
          fmt::format("for {} of {} jobs there was no time for their last sizes", cut, jobs.size());
    return measured;
  }

  tune::Wanted wanted_;
  tune::Output output_;
  bool dry_run_ = false, force_ = false, json_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tune() {
  return std::make_unique<Tune>();
}

}  // namespace hcomm::cli
