// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/bytes.h"
#include "base/clock.h"
#include "hcc-bench/overlap/motion.h"
#include "hcc-bench/overlap/report.h"
#include "hcc-bench/overlap/row.h"
#include "hcc-bench/overlap/work.h"
#include "hcc-bench/report/facts.h"

namespace hcomm::bench::overlap {

namespace {

constexpr int kWarmUps = 2, kTrials = 3;

struct Session {
  World& world;
  const Options& options;
  Watchdog& watchdog;
  const std::atomic<int>& stop_signal;
  Work work;
  double steps_per_s = 0;
  bool interrupted = false;
};

// One operation and size.
class Point {
 public:
  Point(Session& session, const Sweep& sweep, const Buffers& buffers, size_t bytes)
      : session_(session),
        world_(session.world),
        sweep_(sweep),
        task_(buffers.task(sweep, bytes, {world_.rank(), world_.ranks(), sweep.root})),
        motion_(make_motion(session.options.progress, call(), task_.layout, task_.place)) {}

  Row run(uint64_t& epoch) {
    session_.watchdog.at(fmt::format("overlap, {} {}", name(), size_text(task_.layout.bytes)),
                         task_.layout.bytes);
    prepare(task_, pattern(++epoch));
    plan_work();
    std::vector<Round> rounds;
    for (int64_t i = 0; i < session_.options.rounds && !session_.interrupted; i++) {
      prepare(task_, pattern(++epoch));
      rounds.push_back(round());
      judge(epoch);
    }
    return report(rounds);
  }

 private:
  std::string_view name() const { return info(sweep_.operation).name; }

  Call call() const {
    return {sweep_.operation, task_.send, task_.recv, hcommFloat32, hcommSum, world_.comm()};
  }

  Pattern pattern(uint64_t epoch) const {
    return {sweep_.type, sweep_.redop, world_.ranks(), epoch};
  }

  double timed(const std::function<void()>& body) {
    world_.barrier();
    const int64_t start_ns = now_ns();
    body();
    const double time_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
    session_.watchdog.step();
    return time_s;
  }

  double alone() {
    return timed([&] {
      motion_->start();
      motion_->wait();
    });
  }

  void compute() {
    run_in_pieces(session_.work, steps_, piece_, [&] { motion_->progress(); });
  }

  // As much of it as the operation takes time, the same on all ranks.
  void plan_work() {
    for (int i = 0; i < kWarmUps; i++) alone();
    std::vector<double> trials;
    for (int i = 0; i < kTrials; i++) trials.push_back(alone());
    world_.maximum(trials);
    const double speed = session_.steps_per_s;
    steps_ = std::max<uint64_t>(1, static_cast<uint64_t>(statistics(trials).median * speed));
    piece_ = steps_;
    if (session_.options.progress != "plan") return;
    const double every_s = static_cast<double>(session_.options.every_ns) * 1e-9;
    piece_ = std::clamp<uint64_t>(static_cast<uint64_t>(every_s * speed), 1, steps_);
  }

  Round round() {
    double times[] = {alone(), timed([&] { compute(); }), timed([&] {
                        motion_->start();
                        compute();
                        motion_->wait();
                      }),
                      session_.stop_signal.load(std::memory_order_relaxed) != 0 ? 1.0 : 0.0};
    world_.maximum(times);
    session_.interrupted = times[3] != 0;
    return {times[0], times[1], times[2]};
  }

  void judge(uint64_t epoch) {
    const Verdict verdict = verify(task_, pattern(epoch));
    if (verdict.wrong > 0 && wrong_ == 0)
      cli::complain(fmt::format("hcc-bench: rank {}: {} {}: {}; {} wrong", world_.rank(), name(),
                                size_text(task_.layout.bytes), verdict.text, verdict.wrong));
    wrong_ += verdict.wrong;
  }

  Row report(const std::vector<Round>& rounds) {
    Row row;
    row.operation = name();
    row.progress = session_.options.progress;
    row.ranks = world_.ranks();
    row.bytes = task_.layout.bytes;
    fill(row, rounds);
    row.pieces = static_cast<double>((steps_ + piece_ - 1) / piece_);
    row.wrong = world_.sum(wrong_);
    char text[256] = {};
    const std::string operation(info(sweep_.operation).call);
    if (hcommCommExplain(world_.comm(), operation.c_str(), task_.layout.count, hcommFloat32, text,
                         sizeof text) == hcommSuccess)
      row.algorithm = text;
    return row;
  }

  Session& session_;
  World& world_;
  const Sweep& sweep_;
  Task task_;
  std::unique_ptr<Motion> motion_;
  uint64_t steps_ = 1, piece_ = 1;
  uint64_t wrong_ = 0;  // elements of this rank
};

std::vector<Sweep> sweeps_of(const Options& options) {
  std::vector<Sweep> list;
  for (const Operation operation : options.operations)
    list.push_back({.operation = operation,
                    .redop = info(operation).reduces ? std::optional(Op::sum) : std::nullopt,
                    .sizes = options.sizes});
  return list;
}

Outcome measure(Session& session, const std::vector<Sweep>& sweeps, Sheet* sheet) {
  const Buffers buffers(capacity(sweeps, session.world.rank(), session.world.ranks()), "plain");
  session.watchdog.at("overlap, the computation alone", 0);
  session.steps_per_s = steps_per_second(session.world, session.work);
  Outcome outcome;
  uint64_t epoch = 1;
  for (const Sweep& sweep : sweeps)
    for (const size_t bytes : sweep.sizes) {
      const Row row = Point(session, sweep, buffers, bytes).run(epoch);
      outcome.wrong += row.wrong;
      if (sheet) sheet->add(entry_of(row));
      outcome.interrupted = session.interrupted;
      if (outcome.interrupted) return outcome;
    }
  return outcome;
}

}  // namespace

Outcome run(World& world, const Options& options, const std::atomic<int>& stop_signal) {
  std::vector<Sweep> sweeps = sweeps_of(options);
  fit_to_memory(world, sweeps, TooLarge::refuse);
  std::unique_ptr<Sheet> sheet;
  world.on_rank_0([&] {
    sheet = std::make_unique<Sheet>(sheet_plan(options, collect_facts(world, {.check = "all"})));
  });
  const auto give_up = [&](const std::string& reason) {
    if (sheet) sheet->give_up(reason);
  };
  Watchdog watchdog(options.hang_ns, world.rank(), world.ranks(), [&] { give_up("hang"); });
  Session session{world, options, watchdog, stop_signal, {}};
  Outcome outcome;
  try {
    outcome = measure(session, sweeps, sheet.get());
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  if (sheet) sheet->end(outcome.interrupted ? "interrupted" : "");
  watchdog.at("the end", 0);
  return outcome;
}

}  // namespace hcomm::bench::overlap
