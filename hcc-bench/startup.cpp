// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "hcc-bench/run.h"

namespace hcomm::bench {

namespace {

constexpr int64_t kLeastRounds = 5, kMostRounds = 50;

double since_s(int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

// One round: split, first operation, destroy; seconds of this rank.
struct Round {
  double split, first, destroy;
};

Round run_round(World& world) {
  Round round{};
  hcommComm_t comm = nullptr;
  world.barrier();
  int64_t start_ns = now_ns();
  require(hcommCommSplit(world.comm(), 0, world.rank(), &comm, nullptr), world.comm(), "split");
  round.split = since_s(start_ns);
  float value = 1;
  start_ns = now_ns();
  require(hcommAllReduce(&value, &value, 1, hcommFloat32, hcommSum, comm, nullptr), comm,
          "first all_reduce");
  round.first = since_s(start_ns);
  world.barrier();
  start_ns = now_ns();
  require(hcommCommDestroy(comm), nullptr, "destroy");
  round.destroy = since_s(start_ns);
  return round;
}

Row row_of(const Session& session, const std::string& part, std::vector<double> seconds) {
  Row row;
  row.series.operation = "startup." + part;
  row.algorithm = part;
  row.series.ranks = session.world.ranks();
  if (session.options.timestamps) row.time = utc_text(wall_ns());
  Samples samples;
  samples.seconds = std::move(seconds);
  samples.settled = true;
  fill_times(row, samples, 1);
  return row;
}

}  // namespace

Outcome run_startup(Session& session) {
  World& world = session.world;
  const Rules& rules = session.options.rules;
  const int64_t most = rules.samples > 0 ? rules.samples : kMostRounds;
  const int64_t least = std::min(most, kLeastRounds);
  session.watchdog.at("startup", 0);
  Outcome outcome;
  std::vector<double> split, first, destroy;
  const int64_t start_ns = now_ns();
  for (int64_t i = 0; i < most && !outcome.interrupted; i++) {
    const Round round = run_round(world);
    const bool stop = session.stop_signal.load(std::memory_order_relaxed) != 0;
    double values[] = {round.split, round.first, round.destroy, since_s(start_ns),
                       stop ? 1.0 : 0.0};
    world.maximum(values);
    split.push_back(values[0]);
    first.push_back(values[1]);
    destroy.push_back(values[2]);
    session.watchdog.step();
    outcome.interrupted = values[4] != 0;
    if (rules.samples == 0 && i + 1 >= least && values[3] >= rules.max_time_s) break;
  }
  const std::vector<Row> rows = {row_of(session, "init", {world.init_seconds()}),
                                 row_of(session, "split", split), row_of(session, "first", first),
                                 row_of(session, "destroy", destroy)};
  for (const Row& row : rows)
    if (session.outlet.row) session.outlet.row(row);
  if (session.outlet.series_end) session.outlet.series_end(rows);
  return outcome;
}

}  // namespace hcomm::bench
