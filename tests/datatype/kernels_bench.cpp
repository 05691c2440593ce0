// SPDX-License-Identifier: Apache-2.0
// Speed of the reduction kernels in each instruction set that runs here: bytes of one buffer a
// second (of all inputs for sum_many), and the time of calls with few elements.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "datatype/kernels.h"

namespace hcomm {
namespace {

struct Buffers {
  Buffers(Type type, size_t count, size_t inputs)
      : to(count * size_of(type)), from(inputs, std::vector<char>(count * size_of(type))) {
    constexpr size_t kPeriod = 97;
    std::vector<char> pattern(kPeriod * size_of(type));
    for (size_t i = 0; i < kPeriod; i++)
      store_value(type, pattern.data() + i * size_of(type), static_cast<double>(i) / 16 + 1);
    for (std::vector<char>& input : from) {
      for (size_t at = 0; at < input.size(); at += pattern.size())
        std::memcpy(input.data() + at, pattern.data(), std::min(pattern.size(), input.size() - at));
      pointers.push_back(input.data());
    }
  }
  std::vector<char> to;
  std::vector<std::vector<char>> from;
  std::vector<const void*> pointers;
};

bool select(benchmark::State& state, const std::string& kernels) {
  try {
    select_kernels(kernels);
    return true;
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
    return false;
  }
}

void two_inputs(benchmark::State& state, const std::string& kernels, Type type, Op op,
                Store store) {
  if (!select(state, kernels)) return;
  const auto bytes = static_cast<size_t>(state.range(0));
  const size_t count = bytes / size_of(type);
  Buffers buffers(type, count, 2);
  for (auto _ : state) {
    reduce2(type, op, buffers.to.data(), buffers.pointers[0], buffers.pointers[1], count, store);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void many_inputs(benchmark::State& state, const std::string& kernels, Type type) {
  if (!select(state, kernels)) return;
  const size_t count = 64 * kKiB / size_of(type);
  Buffers buffers(type, count, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    reduce(type, Op::sum, buffers.to.data(), buffers.pointers, count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * int64_t{64 * kKiB});
}

void few_elements(benchmark::State& state, Type type) {
  select_kernels("");
  const auto count = static_cast<size_t>(state.range(0));
  Buffers buffers(type, count, 2);
  for (auto _ : state) {
    reduce2(type, Op::sum, buffers.to.data(), buffers.pointers[0], buffers.pointers[1], count);
    benchmark::ClobberMemory();
  }
}

void finish(benchmark::State& state, Type type, unsigned ranks) {
  select_kernels("");
  const size_t count = 64 * kKiB / size_of(type);
  Buffers buffers(type, count, 1);
  for (auto _ : state) {
    finish_avg(type, buffers.to.data(), buffers.pointers[0], count, ranks);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * int64_t{64 * kKiB});
}

void register_all() {
  constexpr int64_t kInCache = 64 * kKiB, kBeyondCache = 64 * kMiB;
  for (int i = 0; i < kTypes; i++) {
    const auto type = static_cast<Type>(i);
    const std::string type_name(name(type));
    for (const char* kernels : {"scalar", "avx2", "avx512"}) {
      for (const Op op : {Op::sum, Op::prod, Op::max})
        benchmark::RegisterBenchmark(
            (type_name + "/" + std::string(name(op)) + "/" + kernels).c_str(), two_inputs, kernels,
            type, op, Store::cached)
            ->Arg(kInCache)
            ->Arg(kBeyondCache);
      benchmark::RegisterBenchmark((type_name + "/sum_streaming/" + kernels).c_str(), two_inputs,
                                   kernels, type, Op::sum, Store::streaming)
          ->Arg(kBeyondCache);
      benchmark::RegisterBenchmark((type_name + "/sum_many/" + kernels).c_str(), many_inputs,
                                   kernels, type)
          ->Arg(3)
          ->Arg(8)
          ->Arg(64);
    }
    benchmark::RegisterBenchmark((type_name + "/few").c_str(), few_elements, type)
        ->Arg(1)
        ->Arg(3)
        ->Arg(8)
        ->Arg(16)
        ->Arg(17);
    benchmark::RegisterBenchmark((type_name + "/finish_avg").c_str(), finish, type, 7u);
  }
}

const bool kRegistered = (register_all(), true);

}  // namespace
}  // namespace hcomm
