// SPDX-License-Identifier: Apache-2.0
// What one operation costs the recorder, which is always on: 20 ns is the bound.
#include <benchmark/benchmark.h>

#include "trace/recorder.h"

namespace hcomm::trace {
namespace {

void record(benchmark::State& state) {
  Recorder recorder(-1, 0, 1);
  for (auto _ : state) {
    uint64_t serial = 0;
    OpRecord& op = recorder.begin(serial);
    op.sequence = op.count = serial;
    op.communicator = op.plan = op.root = 1;
    op.collective = op.type = op.op = 1;
    recorder.publish(op, serial);
    Recorder::end(op, OpState::done);
  }
}
BENCHMARK(record)->Name("trace/record");

}  // namespace
}  // namespace hcomm::trace
