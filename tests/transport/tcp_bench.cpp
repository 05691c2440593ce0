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

enum class Take : uint8_t { in_place, by_peek };
enum class Ways : uint8_t { one, both };

// Both directions of a rank, moved in turn until both are complete. `in` null: nothing is received.
void exchange(transport::Channel& channel, Outgoing* out, Incoming* in, const Segment& to,
              Take take) {
  while ((out != nullptr && !out->complete) || (in != nullptr && !in->complete())) {
    Status status;
    if (out != nullptr && !out->complete) status = channel.send(*out);
    if (!status.ok()) std::abort();
    if (in == nullptr || in->complete()) continue;
    if (take == Take::in_place) {
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
      if (rank == 0) send();
      receive();
      if (rank == 1) send();
    }
  }
  void stream(uint32_t count, Ways ways, Take take) {
    for (uint32_t i = 0; i < count; i++) {
      Outgoing out = next_out();
      Incoming in = next_in();
      exchange(channel, ways == Ways::both || rank == 0 ? &out : nullptr,
               ways == Ways::both || rank == 1 ? &in : nullptr, in_segment, take);
    }
  }

  void send() {
    Outgoing out = next_out();
    exchange(channel, &out, nullptr, in_segment, Take::in_place);
  }
  void receive() {
    Incoming in = next_in();
    exchange(channel, nullptr, &in, in_segment, Take::in_place);
  }
  Outgoing next_out() { return outgoing({sent++, 1}, out_segment); }
  Incoming next_in() { return incoming({received++, 1}, to.size()); }

  uint32_t rank, sent = 0, received = 0;
  transport::Channel& channel;
  std::vector<std::byte> from, to;
  const Segment out_segment{from.data(), from.size()}, in_segment{to.data(), to.size()};
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

void half_round_trip(benchmark::State& state) {
  constexpr uint32_t kCount = 2000;
  run_batches(state, kCount, [](Side& side, uint32_t count) { side.ping_pong(count); });
  state.counters["half"] = benchmark::Counter(
      kCount * 2, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(half_round_trip)
    ->Name("tcp/half_round_trip")
    ->Arg(4)
    ->Arg(1024)
    ->UseRealTime()
    ->MinTime(0.3);

void bandwidth(benchmark::State& state, Ways ways, Take take) {
  const auto count = static_cast<uint32_t>(std::max<int64_t>(1, (64 << 20) / state.range(0)));
  run_batches(state, count,
              [&](Side& side, uint32_t messages) { side.stream(messages, ways, take); });
  state.SetBytesProcessed(state.iterations() * count * state.range(0));
}
void one_way(benchmark::State& state) {
  bandwidth(state, Ways::one, Take::in_place);
}
void both_ways(benchmark::State& state) {
  bandwidth(state, Ways::both, Take::in_place);
}
void both_ways_peek(benchmark::State& state) {
  bandwidth(state, Ways::both, Take::by_peek);
}
BENCHMARK(one_way)
    ->Name("tcp/one_way")
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->UseRealTime()
    ->MinTime(0.2);
BENCHMARK(both_ways)
    ->Name("tcp/both_ways")
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->UseRealTime()
    ->MinTime(0.2);
BENCHMARK(both_ways_peek)
    ->Name("tcp/both_ways_peek")
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->UseRealTime()
    ->MinTime(0.2);

}  // namespace

}  // namespace hcomm::test
