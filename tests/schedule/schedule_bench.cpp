// SPDX-License-Identifier: Apache-2.0
// What proving and pricing cost; the choice of a plan prices every algorithm that fits.
#include <benchmark/benchmark.h>

#include "schedule/check.h"
#include "schedule/cost.h"
#include "schedule/samples.h"

namespace hcomm::schedule {
namespace {

std::vector<Schedule> schedules_of(const benchmark::State& state) {
  return samples::build_all(samples::all()[static_cast<size_t>(state.range(0))],
                            static_cast<uint32_t>(state.range(1)));
}

void label(benchmark::State& state, size_t steps) {
  state.SetLabel(samples::all()[static_cast<size_t>(state.range(0))].name);
  state.counters["a_step"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void build(benchmark::State& state) {
  size_t steps = 0;
  for (const Schedule& schedule : schedules_of(state)) steps += schedule.steps.size();
  for (auto _ : state) benchmark::DoNotOptimize(schedules_of(state));
  label(state, steps);
}

void prove(benchmark::State& state) {
  const std::vector<Schedule> all = schedules_of(state);
  Report report;
  for (auto _ : state) report = check(all);
  if (!report.ok) state.SkipWithError(report.finding.c_str());
  label(state, report.steps);
}

void price(benchmark::State& state) {
  const std::vector<Schedule> all = schedules_of(state);
  const auto ranks = static_cast<uint32_t>(state.range(1));
  Machine machine{.ranks = ranks, .links = std::vector<Link>(size_t{ranks} * ranks)};
  machine.node.assign(ranks, 0);
  machine.cores_of_node = 2;
  size_t steps = 0;
  for (const Schedule& schedule : all) steps += schedule.steps.size();
  for (auto _ : state) benchmark::DoNotOptimize(predict_us(all, machine, {.block_bytes = 1 << 20}));
  label(state, steps);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (int sample = 0; sample < 7; sample++)
    for (const int ranks : {8, 64}) benchmark->Args({sample, ranks});
  benchmark->Args({6, 1024})->Unit(benchmark::kMicrosecond);
}

BENCHMARK(build)->Name("schedule/build")->Apply(sizes);
BENCHMARK(prove)->Name("schedule/prove")->Apply(sizes);
BENCHMARK(price)->Name("schedule/price")->Apply(sizes);

}  // namespace
}  // namespace hcomm::schedule
