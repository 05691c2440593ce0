// SPDX-License-Identifier: Apache-2.0
// Speed of the reduction kernels: kernels/TYPE/OPERATOR/SET/near in each instruction set that runs
// here; of the best one also /misaligned, and /far from the last-level cache with streaming stores.
// Bytes are those of the inputs. Beside them reductions of many inputs, calls of few elements, and
// the division of averages. kernels_table compares with a copy.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "datatype/kernels.h"

namespace hcomm {
namespace {

constexpr size_t kNear = 8 * kKiB, kMany = 64 * kKiB, kFar = 64 * kMiB, kPiece = 256 * kKiB;

// Three buffers that no cache holds, made once: benchmarks run in an order mixed by chance. Bytes
// that are an ordinary number of every type, of which no operator makes an infinity.
char* buffer(int index) {
  static char* const memory = [] {
    const size_t bytes = round_up(3 * (kFar + kPiece), 2 * kMiB);
    return static_cast<char*>(std::memset(std::aligned_alloc(2 * kMiB, bytes), 0x3c, bytes));
  }();
  return memory + static_cast<size_t>(index) * (kFar + kPiece);
}

struct Fold {
  Type type;
  Op op;
  void run(size_t at, size_t bytes, Store store) const {
    reduce2(type, op, buffer(0) + at, buffer(1) + at, buffer(2) + at, bytes / size_of(type), store);
    benchmark::ClobberMemory();
  }
};

void near_cache(benchmark::State& state, const std::string& kernels, Fold fold, size_t offset) {
  select_kernels(kernels);
  fold.run(offset, kNear, Store::cached);
  for (auto _ : state) fold.run(offset, kNear, Store::cached);
  state.SetBytesProcessed(state.iterations() * int64_t{2 * kNear});
}

// The next piece each time, so that none is in a cache when its turn comes.
void far_from_cache(benchmark::State& state, Fold fold) {
  select_kernels("");
  static size_t at = 0;
  buffer(0);
  for (auto _ : state) {
    fold.run(at, kPiece, Store::streaming);
    at = (at + kPiece) % kFar;
  }
  state.SetBytesProcessed(state.iterations() * int64_t{2 * kPiece});
}

void far_copy(benchmark::State& state) {
  static size_t at = 0;
  buffer(0);
  for (auto _ : state) {
    copy_bytes(buffer(0) + at, buffer(1) + at, kPiece, Store::streaming);
    benchmark::ClobberMemory();
    at = (at + kPiece) % kFar;
  }
  state.SetBytesProcessed(state.iterations() * int64_t{kPiece});
}

void many_inputs(benchmark::State& state, const std::string& kernels, Type type) {
  select_kernels(kernels);
  std::vector<const void*> inputs;
  for (int64_t i = 0; i < state.range(0); i++)
    inputs.push_back(buffer(1) + static_cast<size_t>(i) * kMany);
  for (auto _ : state) {
    reduce(type, Op::sum, buffer(0), inputs, kMany / size_of(type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * int64_t{kMany});
}

void few_elements(benchmark::State& state, Type type) {
  select_kernels("");
  const Fold fold{type, Op::sum};
  const size_t bytes = static_cast<size_t>(state.range(0)) * size_of(type);
  fold.run(0, bytes, Store::cached);
  for (auto _ : state) fold.run(0, bytes, Store::cached);
}

void average(benchmark::State& state, Type type) {
  select_kernels("");
  finish_avg(type, buffer(0), buffer(1), kNear / size_of(type), 7);
  for (auto _ : state) {
    finish_avg(type, buffer(0), buffer(1), kNear / size_of(type), 7);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * int64_t{kNear});
}

std::vector<std::string> sets_here() {
  select_kernels("");
  const std::string best(kernels_in_force());
  if (best == "scalar") return {best};
  return best == "avx2" ? std::vector<std::string>{"scalar", best}
                        : std::vector<std::string>{"scalar", "avx2", best};
}

void register_fold(const std::string& stem, Fold fold, const std::vector<std::string>& sets) {
  for (const std::string& set : sets)
    benchmark::RegisterBenchmark((stem + set + "/near").c_str(), near_cache, set, fold, 0);
  const std::string best = stem + sets.back();
  benchmark::RegisterBenchmark((best + "/misaligned").c_str(), near_cache, sets.back(), fold, 1);
  benchmark::RegisterBenchmark((best + "/far").c_str(), far_from_cache, fold);
}

void register_all() {
  const std::vector<std::string> sets = sets_here();
  benchmark::RegisterBenchmark("kernels/copy/far", far_copy);
  for (int t = 0; t < kTypes; t++) {
    const auto type = static_cast<Type>(t);
    const std::string stem = "kernels/" + std::string(name(type)) + "/";
    for (int o = 0; o < kOps; o++) {
      const auto op = static_cast<Op>(o);
      if (!allowed(op, type) || op == Op::avg || op == Op::premul_sum) continue;  // they are sums
      register_fold(stem + std::string(name(op)) + "/", {type, op}, sets);
    }
    for (const std::string& set : sets)
      benchmark::RegisterBenchmark((stem + "sum_many/" + set).c_str(), many_inputs, set, type)
          ->Arg(3)
          ->Arg(8)
          ->Arg(64);
    benchmark::RegisterBenchmark((stem + "few").c_str(), few_elements, type)
        ->Arg(1)
        ->Arg(3)
        ->Arg(17);
    benchmark::RegisterBenchmark((stem + "average").c_str(), average, type);
  }
}

const bool kRegistered = (register_all(), true);

}  // namespace
}  // namespace hcomm
