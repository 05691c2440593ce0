// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/terminal.h"
#include "datatype/kernels.h"
#include "hcc-bench/call.h"
#include "hcc-bench/measure/statistics.h"

namespace hcomm::bench {

namespace {

// Every root is checked up to this size, beyond it one.
constexpr size_t kAllRootsBytes = 64 * kKiB;

void hold_back(int64_t time_ns) {
  timespec left{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
  while (nanosleep(&left, &left) != 0) {
  }
}

// An operator of the library for the length of a row; premul_sum is made and freed.
class RedOp {
 public:
  RedOp(World& world, const Sweep& sweep) : comm_(world.comm()) {
    if (sweep.redop && *sweep.redop != Op::premul_sum)
      value_ = static_cast<hcommRedOp_t>(*sweep.redop);
    if (sweep.redop != Op::premul_sum) return;
    unsigned char factor[8] = {};
    store_value(sweep.type, factor, kPremulFactor);
    require(
        hcommRedOpCreatePreMulSum(&value_, factor, static_cast<hcommDataType_t>(sweep.type), comm_),
        comm_, "make premul_sum");
    made_ = true;
  }
  RedOp(const RedOp&) = delete;
  RedOp& operator=(const RedOp&) = delete;
  ~RedOp() {
    if (made_) hcommRedOpDestroy(value_, comm_);
  }
  hcommRedOp_t value() const { return value_; }

 private:
  hcommComm_t comm_;
  hcommRedOp_t value_ = hcommSum;
  bool made_ = false;
};

// One row: one size of one sweep.
class Point {
 public:
  Point(Session& session, const Sweep& sweep, const Buffers& buffers, size_t bytes)
      : session_(session),
        sweep_(sweep),
        world_(session.world),
        options_(session.options),
        redop_(world_, sweep),
        bytes_(bytes) {
    const int rank = world_.rank(), ranks = world_.ranks();
    at_root_ = buffers.task(sweep, bytes, {rank, ranks, rank});
    other_ = ranks > 1 ? buffers.task(sweep, bytes, {rank, ranks, (rank + 1) % ranks}) : at_root_;
  }

  Row run(uint64_t& epoch) {
    const bool all = options_.check == "all";
    if (options_.check != "off") check_roots(epoch);
    Rules rules = options_.rules;
    rules.target_s = world_.local_ranks() > static_cast<int>(usable_cores()) ? 1e-3 : 2e-4;
    Subject subject{[this](int64_t count) { repeat(count); }, {}, 1};
    if (sweep_.operation == Operation::ping_pong) subject.passes = 2;
    where("timing");
    if (all) {
      // Each operation on fresh data, so a batch is one.
      if (rules.warmup > 0) repeat(rules.warmup);
      rules.warmup = 0;
      rules.batch = 1;
      refresh(++epoch);
      subject.after_batch = [this, &epoch] {
        judge(task(last_root_), epoch);
        refresh(++epoch);
      };
    }
    const Samples samples = sample(world_, clock_, rules, subject, session_.stop_signal);
    interrupted_ = samples.interrupted;
    return report(samples);
  }
  bool interrupted() const { return interrupted_; }
  size_t bytes() const { return at_root_.layout.bytes; }  // as counted

 private:
  const Task& task(int root) {
    Task& chosen = root == world_.rank() ? at_root_ : other_;
    chosen.place.root = root;
    return chosen;
  }

  int next_root() {
    if (sweep_.root != kRootRotate) return sweep_.root;
    const int root = turn_;
    turn_ = (turn_ + 1) % world_.ranks();
    return root;
  }

  void once(int root) {
    if (options_.delay.rank == world_.rank()) hold_back(options_.delay.time_ns);
    const Task& t = task(root);
    last_root_ = root;
    const Call call{sweep_.operation, t.send,
                    t.recv,           static_cast<hcommDataType_t>(sweep_.type),
                    redop_.value(),   world_.comm()};
    require(bench::run(call, t.layout, t.place), world_.comm(), info(sweep_.operation).name);
    session_.watchdog.step();
  }

  void repeat(int64_t count) {
    for (int64_t i = 0; i < count; i++) once(next_root());
  }

  Pattern pattern(uint64_t epoch) const {
    return {sweep_.type, sweep_.redop, world_.ranks(), epoch};
  }

  void refresh(uint64_t epoch) {
    // Whatever the next root is: its input is where both tasks have it, or this rank's own.
    const int root = sweep_.root == kRootRotate ? turn_ : sweep_.root;
    refill(task(root), epoch);
  }

  void refill(const Task& t, uint64_t epoch) {
    prepare(t, pattern(epoch));
    session_.watchdog.step();
  }

  void check_roots(uint64_t& epoch) {
    where("checking");
    int first = sweep_.root, count = 1;
    if (sweep_.root == kRootRotate) {
      const bool every = bytes_ <= kAllRootsBytes;
      first = every ? 0 : static_cast<int>(epoch % static_cast<uint64_t>(world_.ranks()));
      count = every && info(sweep_.operation).rooted() ? world_.ranks() : 1;
    }
    for (int i = 0; i < count; i++) {
      const int root = first + i;
      refill(task(root), ++epoch);
      once(root);
      if (options_.self_test && world_.rank() == spoiled_rank(root)) spoil(task(root), sweep_.type);
      judge(task(root), epoch);
    }
  }

  // A rank that has a result.
  int spoiled_rank(int root) const {
    if (info(sweep_.operation).rooted()) return root;
    return sweep_.operation == Operation::ping_pong ? 1 : world_.ranks() - 1;
  }

  void judge(const Task& t, uint64_t epoch) {
    const Verdict verdict = verify(t, pattern(epoch));
    session_.watchdog.step();
    if (verdict.wrong == 0) return;
    if (wrong_ == 0)
      cli::complain(fmt::format("hcc-bench: rank {}: {} {} {}{}: {}; {} wrong", world_.rank(),
                                info(sweep_.operation).name, size_text(t.layout.bytes),
                                name(sweep_.type),
                                sweep_.redop ? fmt::format(" {}", name(*sweep_.redop)) : "",
                                verdict.text, verdict.wrong));
    wrong_ += verdict.wrong;
  }

  void where(std::string_view phase) {
    session_.watchdog.at(
        fmt::format("{} {}, {}", info(sweep_.operation).name, size_text(bytes_), phase), bytes_);
  }

  Row report(const Samples& samples) {
    Row row;
    row.series = sweep_.series(world_.ranks());
    row.bytes = at_root_.layout.bytes;
    row.requested = bytes_;
    row.count = at_root_.layout.count;
    fill_times(row, samples, bus_factor(sweep_.operation, world_.ranks()));
    if (options_.check != "off") {
      row.wrong = world_.sum(wrong_);
      row.checked = row.wrong == 0 ? Checked::ok : Checked::wrong;
    }
    if (options_.timestamps) row.time = utc_text(wall_ns());
    char text[256] = {};
    const std::string call(info(sweep_.operation).call);
    if (hcommCommExplain(world_.comm(), call.c_str(), row.count,
                         static_cast<hcommDataType_t>(sweep_.type), text,
                         sizeof text) == hcommSuccess)
      row.algorithm = text;
    return row;
  }

  Session& session_;
  const Sweep& sweep_;
  World& world_;
  const Options& options_;
  RedOp redop_;
  size_t bytes_;
  MonotonicClock clock_;
  Task at_root_{}, other_{};
  int turn_ = 0, last_root_ = 0;
  uint64_t wrong_ = 0;  // elements of this rank
  bool interrupted_ = false;
};

void say(const Session& session, const Row& row) {
  if (session.options.common.verbosity == 0 || session.world.rank() != 0) return;
  cli::complain(
      fmt::format("hcc-bench: {} {}: {} samples of {} operations, median known to {:.2f} %",
                  row.series.operation, size_text(row.bytes), row.n, row.batch, row.noise * 100));
}

}  // namespace

void fill_times(Row& row, const Samples& samples, double factor) {
  const Statistics s = statistics(samples.seconds);
  row.n = s.n;
  row.batch = samples.batch;
  row.min_us = s.least * 1e6;
  row.p50_us = s.median * 1e6;
  if (s.p99) row.p99_us = *s.p99 * 1e6;
  row.cv = s.cv;
  row.noise = s.noise;
  row.settled = samples.settled;
  const Rates r = rates(row.bytes, s.median, factor);
  row.algbw = r.algbw;
  row.busbw = r.busbw;
  for (const double seconds : samples.seconds) row.times_us.push_back(seconds * 1e6);
}

Outcome run_sweeps(Session& session, const std::vector<Sweep>& sweeps) {
  Outcome outcome;
  const Buffers buffers(capacity(sweeps, session.world.rank(), session.world.ranks()),
                        session.options.memory);
  uint64_t epoch = 1;
  for (const Sweep& sweep : sweeps) {
    if (sweep.operation == Operation::startup) {
      const Outcome started = run_startup(session);
      outcome.interrupted = started.interrupted;
      if (outcome.interrupted) return outcome;
      continue;
    }
    std::vector<Row> rows;
    for (const size_t bytes : sweep.sizes) {
      Point point(session, sweep, buffers, bytes);
      const bool repeated = !rows.empty() && rows.back().bytes == point.bytes();
      if (repeated) continue;
      rows.push_back(point.run(epoch));
      outcome.wrong += rows.back().wrong;
      if (session.outlet.row) session.outlet.row(rows.back());
      say(session, rows.back());
      outcome.interrupted = point.interrupted();
      if (outcome.interrupted) break;
    }
    if (session.outlet.series_end) session.outlet.series_end(rows);
    if (outcome.interrupted) break;
  }
  return outcome;
}

}  // namespace hcomm::bench
