// SPDX-License-Identifier: Apache-2.0
// What one operation costs the recorder, which is always on: 20 ns is the bound.
#include <benchmark/benchmark.h>

#include "trace/recorder.h"

namespace hcomm::trace {
namespace {

void BM_Record(benchmark::State& state) {
  Recorder recorder(-1, 0, 1);
  for (auto _ : state) {
    uint64_t serial = 0;
    OpRecord& record = recorder.begin(serial);
    record.sequence = record.count = serial;
    record.communicator = record.plan = record.root = 1;
    record.collective = record.type = record.op = 1;
    recorder.publish(record, serial);
    Recorder::end(record, OpState::done);
  }
}
BENCHMARK(BM_Record);

}  // namespace
}  // namespace hcomm::trace
