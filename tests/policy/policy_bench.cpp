// SPDX-License-Identifier: Apache-2.0
// What the first call of a shape pays for its choice.
#include <benchmark/benchmark.h>

#include "policy/policy.h"

namespace hcomm::policy {
namespace {

void choose_plan(benchmark::State& state) {
  const auto collective = static_cast<schedule::Collective>(state.range(0));
  const auto ranks = static_cast<uint32_t>(state.range(1));
  const Inputs inputs{.machine = default_machine(ranks, 8, 2)};
  const Request request{.shape = {.collective = collective, .ranks = ranks},
                        .block_bytes = uint64_t{64} << 20};
  Plan plan;
  for (auto _ : state) plan = choose(inputs, request);
  state.SetLabel(std::string(name(collective)) + " " + text(plan.chosen));
}
BENCHMARK(choose_plan)
    ->Name("policy/choose")
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 8, 1), {8, 64}})
    ->Args({0, 256});

}  // namespace
}  // namespace hcomm::policy
