// SPDX-License-Identifier: Apache-2.0
// What users wait for before the first byte: a communicator of ranks that are threads, from the
// unique id until all have it (api/join), and an operation of 4 bytes on it (api/all_reduce).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "hcomm/hcomm.h"

namespace hcomm {
namespace {

void require(hcommResult_t result) {
  if (result != hcommSuccess) std::abort();
}

void in_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; rank++) threads.emplace_back(body, rank);
  for (std::thread& each : threads) each.join();
}

class Ranks {
 public:
  explicit Ranks(int count) : comms_(static_cast<size_t>(count)) {
    hcommUniqueId id;
    require(hcommGetUniqueId(&id));
    in_threads(count, [&](int rank) { require(hcommCommInitRank(&at(rank), count, id, rank)); });
  }
  Ranks(const Ranks&) = delete;
  ~Ranks() {
    in_threads(static_cast<int>(comms_.size()),
               [&](int rank) { require(hcommCommDestroy(at(rank))); });
  }
  hcommComm_t& at(int rank) { return comms_[static_cast<size_t>(rank)]; }

 private:
  std::vector<hcommComm_t> comms_;
};

void join(benchmark::State& state) {
  for (auto _ : state) {
    const int64_t start_ns = now_ns();
    const Ranks ranks(static_cast<int>(state.range(0)));
    state.SetIterationTime(static_cast<double>(now_ns() - start_ns) * 1e-9);
  }
}

void all_reduce(benchmark::State& state) {
  constexpr int kTimes = 1000;
  const auto count = static_cast<int>(state.range(0));
  Ranks ranks(count);
  for (auto _ : state)
    in_threads(count, [&](int rank) {
      float value = 1;
      for (int i = 0; i < kTimes; i++)
        require(hcommAllReduce(&value, &value, 1, hcommFloat32, hcommMax, ranks.at(rank), nullptr));
    });
  state.SetItemsProcessed(state.iterations() * kTimes);
}

BENCHMARK(join)->Name("api/join")->Arg(2)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(all_reduce)->Name("api/all_reduce")->Arg(2)->UseRealTime();

}  // namespace
}  // namespace hcomm
