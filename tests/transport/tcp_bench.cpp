// SPDX-License-Identifier: Apache-2.0
// Two ranks as two threads over TCP on loopback: half a round trip, and bandwidth one way and both
// ways, received in place and peeked at.
#include <benchmark/benchmark.h>

#include <thread>
#include <vector>

#include "pair.h"

namespace hcomm::test {

namespace {

using transport::Incoming;
using transport::Outgoing;
using transport::Segment;

// Both directions of a rank, moved in turn until both are complete. `in` null: nothing is received.
void exchange(transport::Channel& channel, Outgoing* out, Incoming* in, const Segment& to,
              bool by_peek) {
  while ((out != nullptr && !out->complete) || (in != nullptr && !in->complete())) {
    Status status;
    if (out != nullptr && !out->complete) status = channel.send(*out);
    if (!status.ok()) std::abort();
    if (in == nullptr || in->complete()) continue;
    if (!by_peek) {
      status = channel.receive(*in, {&to, 1});
    } else {
      transport::View view;
      status = channel.peek(*in, view);
      benchmark::DoNotOptimize(view.data);
      if (view.bytes > 0) channel.release(*in, view.bytes);
    }
    if (!status.ok()) std::abort();
  }
}

// What one rank does `count` times.
struct Side {
  Side(Job& job, uint32_t own, size_t bytes)
      : rank(own),
        channel(job.endpoints[own]->channel(1 - own, 0)),
        from(bytes, std::byte{1}),
        to(bytes) {}

  void ping_pong(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
      if (rank == 0) move(true, false, false);
      move(false, true, false);
      if (rank == 1) move(true, false, false);
    }
  }
  void stream(uint32_t count, bool both, bool by_peek) {
    for (uint32_t i = 0; i < count; i++) move(both || rank == 0, both || rank == 1, by_peek);
  }
  void move(bool sends, bool receives, bool by_peek) {
    const Segment out_segment{from.data(), from.size()}, in_segment{to.data(), to.size()};
    Outgoing out = outgoing({sent, 1}, out_segment);
    Incoming in = incoming({received, 1}, to.size());
    sent += sends ? 1 : 0;
    received += receives ? 1 : 0;
    exchange(channel, sends ? &out : nullptr, receives ? &in : nullptr, in_segment, by_peek);
  }

  uint32_t rank, sent = 0, received = 0;
  transport::Channel& channel;
  std::vector<std::byte> from, to;
};

template <typename Work>
void run_batches(benchmark::State& state, uint32_t count, Work work) {
  Job job{2};
  job.open(*transport::find("tcp"));
  const auto bytes = static_cast<size_t>(state.range(0));
  Side first(job, 0, bytes), second(job, 1, bytes);
  const auto batch = [&](uint32_t messages) {
    std::thread peer([&] { work(second, messages); });
    work(first, messages);
    peer.join();
  };
  batch(10);
  for (auto _ : state) batch(count);
  state.SetItemsProcessed(state.iterations() * count);
}

void BM_half_round_trip(benchmark::State& state) {
  constexpr uint32_t kCount = 2000;
  run_batches(state, kCount, [](Side& side, uint32_t count) { side.ping_pong(count); });
  state.counters["half_us"] = benchmark::Counter(
      kCount * 2e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_half_round_trip)->Arg(4)->Arg(1024)->UseRealTime()->MinTime(0.3);

void bandwidth(benchmark::State& state, bool both, bool by_peek) {
  const auto count = static_cast<uint32_t>(std::max<int64_t>(1, (64 << 20) / state.range(0)));
  run_batches(state, count,
              [&](Side& side, uint32_t messages) { side.stream(messages, both, by_peek); });
  state.SetBytesProcessed(state.iterations() * count * state.range(0));
}
void BM_one_way(benchmark::State& state) {
  bandwidth(state, false, false);
}
void BM_both_ways(benchmark::State& state) {
  bandwidth(state, true, false);
}
void BM_both_ways_peek(benchmark::State& state) {
  bandwidth(state, true, true);
}
BENCHMARK(BM_one_way)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime()->MinTime(0.2);
BENCHMARK(BM_both_ways)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime()->MinTime(0.2);
BENCHMARK(BM_both_ways_peek)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime()->MinTime(0.2);

}  // namespace

}  // namespace hcomm::test
