// SPDX-License-Identifier: Apache-2.0
// What a step costs in the engine: a chain of local steps of 4 bytes, each waiting for the one
// before, so that nothing but the executor is measured. Items are steps.
#include <benchmark/benchmark.h>

#include "engine/executor.h"
#include "schedule/builder.h"

namespace hcomm::engine {
namespace {

schedule::Schedule chain(uint32_t steps) {
  const schedule::Shape shape{.collective = schedule::Collective::all_reduce};
  schedule::Builder builder(shape);
  schedule::Slice at = builder.input();
  for (uint32_t i = 0; i + 1 < steps; i++) {
    const schedule::Slice next = builder.scratch(at);
    builder.copy(next, at);
    at = next;
  }
  builder.copy(builder.output(), at);
  return builder.finish("chain", schedule::Order::any);
}

void step(benchmark::State& state) {
  const auto steps = static_cast<uint32_t>(state.range(0));
  const schedule::Schedule schedule = chain(steps);
  const Program program = compile(schedule);
  trace::Recorder recorder(-1, 0, 1);
  Executor executor({.recorder = &recorder, .ranks = 1});
  float in = 1, out = 0;
  Binding binding;
  binding.buffers.resize(3);
  binding.element_bytes = 4;
  binding.buffers[schedule::kInput] = {.data = reinterpret_cast<std::byte*>(&in),
                                       .block_elements = 1};
  binding.buffers[schedule::kOutput] = {.data = reinterpret_cast<std::byte*>(&out),
                                        .block_elements = 1};
  executor.bind({.shape = &schedule.shape, .program = &program, .type = Type::float32}, binding);
  while (!executor.done()) executor.advance();
  for (auto _ : state) {
    executor.bind_again({});
    while (!executor.done()) executor.advance();
  }
  benchmark::DoNotOptimize(out);
  state.SetItemsProcessed(state.iterations() * steps);
}
BENCHMARK(step)->Name("engine/step")->Arg(1)->Arg(2)->Arg(16)->Arg(256);

}  // namespace
}  // namespace hcomm::engine
