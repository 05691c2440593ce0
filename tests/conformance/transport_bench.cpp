// SPDX-License-Identifier: Apache-2.0
// Time of a message between two ranks on two cores, beside the distance of the cores themselves:
// what one cache line takes one way. `one_way` is half a round trip, `stream` one direction,
// `exchange` both at once, `code` both ends in one thread, `wake` a message to a rank that sleeps.
// Ranks are pinned threads (shm: the same code and memory as between processes).
#include <benchmark/benchmark.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "base/thread.h"
#include "conformance/fleet.h"

namespace hcomm::test {
namespace {

// This thread on one core, until the end of the scope (threads it makes would inherit it).
class Pinned {
 public:
  explicit Pinned(int core) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  }
  Pinned(const Pinned&) = delete;
  ~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// A line that two cores hand to one another.
void Distance(benchmark::State& state) {
  alignas(64) static std::atomic<uint32_t> there{0}, back{0};
  there = back = 0;
  std::atomic<bool> stop{false};
  std::thread peer([&] {
    const Pinned pinned(1);
    for (uint32_t turn = 1; !stop; turn++) {
      while (there.load(std::memory_order_acquire) != turn)
        if (stop) return;
      back.store(turn, std::memory_order_release);
    }
  });
  const Pinned pinned(0);
  uint32_t turn = 0;
  for (auto _ : state) {
    there.store(++turn, std::memory_order_release);
    while (back.load(std::memory_order_acquire) != turn) {
    }
  }
  stop = true;
  peer.join();
  state.counters["one_way_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 2 / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Memory of one rank: no line of it is another's.
struct Buffer {
  explicit Buffer(size_t size)
      : storage(size + 256), segment{storage.data() + 128 - at(storage) % 64, size} {}
  static size_t at(const std::vector<std::byte>& v) { return reinterpret_cast<size_t>(v.data()); }
  std::vector<std::byte> storage;
  Segment segment;
};

// One end of a channel between two ranks, and its buffers.
struct End {
  End(Fleet& fleet, uint32_t rank, size_t size)
      : channel(fleet[rank].to(1 - rank)), out(size), in(size) {}
  Outgoing outgoing(uint32_t sequence) const {
    return {.label = {sequence, 1},
            .segments = &out.segment,
            .segment_count = 1,
            .bytes = out.segment.bytes};
  }
  Incoming incoming(uint32_t sequence) const {
    return {.label = {sequence, 1}, .bytes = in.segment.bytes};
  }
  void send(uint32_t sequence) {
    Outgoing message = outgoing(sequence);
    while (!message.complete && channel.send(message).ok()) {
    }
  }
  // False: told to stop before a message came.
  bool receive(uint32_t sequence, const std::atomic<bool>& stop) {
    Incoming message = incoming(sequence);
    while (!message.complete()) {
      if (!channel.receive(message, {&in.segment, 1}).ok()) return false;
      if (!message.begun && stop.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }
  bool exchange(uint32_t sequence) {
    Outgoing message = outgoing(sequence);
    Incoming coming = incoming(sequence);
    while (!message.complete || !coming.complete()) {
      if (!message.complete && !channel.send(message).ok()) return false;
      if (!coming.complete() && !channel.receive(coming, {&in.segment, 1}).ok()) return false;
    }
    return true;
  }
  Channel& channel;
  Buffer out, in;
};

// At most so long that the end is noticed.
void sleep_once(Endpoint& endpoint) {
  std::vector<pollfd> descriptors;
  int cap_ms = 100;
  if (endpoint.prepare_sleep(descriptors, cap_ms))
    ::poll(descriptors.data(), descriptors.size(), cap_ms);
  endpoint.after_sleep();
}

// Rank 1 does `there` for the sequences 1, 2, ... on core 1 until it is false, rank 0 `here` on
// core 0.
template <typename Here, typename There>
void run(benchmark::State& state, const Transport* transport, Here here, There there) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Fleet fleet(*transport, 2);
  alignas(64) std::atomic<bool> stop{false};
  std::thread peer([&] {
    const Pinned pinned(1);
    End end(fleet, 1, bytes);
    for (uint32_t sequence = 1; there(end, sequence, stop); sequence++) {
    }
  });
  {
    const Pinned pinned(0);
    End end(fleet, 0, bytes);
    uint32_t sequence = 0;
    for (auto _ : state) here(end, ++sequence, stop);
    stop = true;
  }
  peer.join();
}

void OneWay(benchmark::State& state, const Transport* transport) {
  run(
      state, transport,
      [](End& end, uint32_t sequence, std::atomic<bool>& stop) {
        end.send(sequence);
        end.receive(sequence, stop);
      },
      [](End& end, uint32_t sequence, std::atomic<bool>& stop) {
        const bool came = end.receive(sequence, stop);
        if (came) end.send(sequence);
        return came;
      });
  state.counters["one_way_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 2 / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Stream(benchmark::State& state, const Transport* transport) {
  alignas(64) static std::atomic<uint32_t> received;
  received = 0;
  run(
      state, transport,
      [](End& end, uint32_t sequence, std::atomic<bool>&) {
        end.send(sequence);
        while (received.load(std::memory_order_acquire) + 4 < sequence) {
        }
      },
      [](End& end, uint32_t sequence, std::atomic<bool>& stop) {
        const bool came = end.receive(sequence, stop);
        if (came) received.store(sequence, std::memory_order_release);
        return came;
      });
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Exchange(benchmark::State& state, const Transport* transport) {
  alignas(64) static std::atomic<uint32_t> allowed;
  allowed = 0;
  run(
      state, transport,
      [](End& end, uint32_t sequence, std::atomic<bool>&) {
        allowed.store(sequence, std::memory_order_release);
        end.exchange(sequence);
      },
      [](End& end, uint32_t sequence, std::atomic<bool>& stop) {
        while (allowed.load(std::memory_order_acquire) < sequence)
          if (stop) return false;
        return end.exchange(sequence);
      });
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Both ends in one thread: what the code itself costs, without the distance.
void Code4(benchmark::State& state, const Transport* transport) {
  Fleet fleet(*transport, 2);
  std::vector<std::byte> out(4), in(4);
  Segment from{out.data(), 4}, to{in.data(), 4};
  Channel &a = fleet[0].to(1), &b = fleet[1].to(0);
  uint32_t sequence = 0;
  for (auto _ : state) {
    Outgoing message{.label = {++sequence, 1}, .segments = &from, .segment_count = 1, .bytes = 4};
    Incoming incoming{.label = {sequence, 1}, .bytes = 4};
    benchmark::DoNotOptimize(a.send(message));
    benchmark::DoNotOptimize(b.receive(incoming, {&to, 1}));
  }
}

// Rank 1 sleeps as the engine does, for lack of a message; from the call that sends one until
// rank 1 has it.
void Wake(benchmark::State& state, const Transport* transport) {
  constexpr int64_t kAsleepNs = 100'000;
  Fleet fleet(*transport, 2);
  alignas(64) std::atomic<bool> stop{false};
  alignas(64) std::atomic<int64_t> arrived_ns{0};
  std::thread peer([&] {
    const Pinned pinned(1);
    End end(fleet, 1, 4);
    for (uint32_t sequence = 1;; sequence++) {
      Incoming message = end.incoming(sequence);
      while (!message.complete()) {
        if (!end.channel.receive(message, {&end.in.segment, 1}).ok() || stop) return;
        if (!message.complete()) sleep_once(fleet[1].endpoint());
      }
      arrived_ns.store(now_ns(), std::memory_order_release);
    }
  });
  {
    const Pinned pinned(0);
    End end(fleet, 0, 4);
    uint32_t sequence = 0;
    for (auto _ : state) {
      for (const int64_t then_ns = now_ns() + kAsleepNs; now_ns() < then_ns;) {
      }
      arrived_ns.store(0, std::memory_order_relaxed);
      const int64_t start_ns = now_ns();
      end.send(++sequence);
      int64_t end_ns = 0;
      while ((end_ns = arrived_ns.load(std::memory_order_acquire)) == 0) {
      }
      state.SetIterationTime(static_cast<double>(end_ns - start_ns) * 1e-9);
    }
    stop = true;
  }
  peer.join();
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("transport/distance", Distance)->UseRealTime();
  for (const Transport* each : all()) {
    if (each->name() == "self" || !each->probe(Config{}).empty()) continue;
    const std::string stem = "transport/" + std::string(each->name());
    benchmark::RegisterBenchmark((stem + "/code").c_str(), Code4, each);
    benchmark::RegisterBenchmark((stem + "/one_way").c_str(), OneWay, each)
        ->Arg(4)
        ->Arg(40)
        ->Arg(1024)
        ->Arg(8192)
        ->Arg(65536)
        ->Arg(1 << 20)
        ->Arg(16 << 20)
        ->UseRealTime();
    benchmark::RegisterBenchmark((stem + "/wake").c_str(), Wake, each)->UseManualTime();
    benchmark::RegisterBenchmark((stem + "/stream").c_str(), Stream, each)
        ->Arg(65536)
        ->Arg(1 << 20)
        ->Arg(16 << 20)
        ->UseRealTime();
    benchmark::RegisterBenchmark((stem + "/exchange").c_str(), Exchange, each)
        ->Arg(65536)
        ->Arg(1 << 20)
        ->Arg(16 << 20)
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace hcomm::test
