// SPDX-License-Identifier: Apache-2.0
// Speed of the reduction kernels: bytes of one buffer a second, in each instruction set that runs
// here and, as `plain`, in a loop over single values as one would write it.
#include <benchmark/benchmark.h>

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
    for (std::vector<char>& input : from) {
      for (size_t i = 0; i < count; i++)
        store_value(type, input.data() + i * size_of(type), static_cast<double>(i % 97) / 16 + 1);
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
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
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

// What is beaten: one value after another, with no vectors.
void plain(benchmark::State& state, Type type) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const size_t size = size_of(type), count = bytes / size;
  Buffers buffers(type, count, 2);
  select_kernels("scalar");
  const auto* a = static_cast<const char*>(buffers.pointers[0]);
  const auto* b = static_cast<const char*>(buffers.pointers[1]);
  for (auto _ : state) {
    for (size_t i = 0; i < count; i++)
      reduce2(type, Op::sum, buffers.to.data() + i * size, a + i * size, b + i * size, 1);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
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
    benchmark::RegisterBenchmark((type_name + "/sum/plain").c_str(), plain, type)->Arg(kInCache);
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
