// SPDX-License-Identifier: Apache-2.0
#include "datatype/kernels.h"

#include <atomic>
#include <cstring>

#include "base/error.h"
#include "datatype/table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hcomm {

namespace {

#if defined(__x86_64__)

bool has_avx2() {
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
         (c & bit_F16C) != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

struct Candidate {
  const KernelTable* table;
  bool (*runs_here)();
};

constexpr Candidate kBestFirst[] = {
#if defined(__x86_64__)
    {&kAvx512Kernels, has_avx512},
    {&kAvx2Kernels, has_avx2},
#endif
    {&kScalarKernels, [] { return true; }},
};

const KernelTable* best() {
  for (const Candidate& candidate : kBestFirst)
    if (candidate.runs_here()) return candidate.table;
  return &kScalarKernels;
}

// Never null: what runs everywhere until this file's variables are initialised, then the best.
constinit std::atomic<const KernelTable*> in_force{&kScalarKernels};
[[maybe_unused]] const bool kUpgraded = (in_force.store(best(), std::memory_order_relaxed), true);

const KernelTable& kernels() {
  return *in_force.load(std::memory_order_relaxed);
}

constexpr size_t index(Type type) {
  return static_cast<size_t>(type);
}
constexpr size_t index(Op op) {
  return static_cast<size_t>(op);
}

[[noreturn, gnu::cold]] void refuse(Type type, Op op) {
  HCOMM_CHECK(allowed(op, type), "reduce {} elements by {}: bit operators are for integers",
              name(type), name(op));
  HCOMM_CHECK(false, "no kernel reduces {} by {}", name(type), name(op));
  __builtin_unreachable();
}

}  // namespace

void reduce2(Type type, Op op, void* to, const void* a, const void* b, size_t count, Store store) {
  FoldTwo* const fold = kernels().fold_two[index(type)][index(op)];
  if (fold == nullptr) [[unlikely]]
    refuse(type, op);
  fold(to, a, b, count, store);
}

void reduce(Type type, Op op, void* to, std::span<const void* const> inputs, size_t count,
            Store store) {
  HCOMM_CHECK(!inputs.empty(), "reduce {} without an input", name(type));
  if (inputs.size() == 1) {
    if (to != inputs[0]) copy_bytes(to, inputs[0], count * size_of(type), store);
  } else if (inputs.size() == 2) {
    reduce2(type, op, to, inputs[0], inputs[1], count, store);
  } else {
    FoldMany* const fold = kernels().fold_many[index(type)][index(op)];
    if (fold == nullptr) [[unlikely]]
      refuse(type, op);
    fold(to, inputs.data(), inputs.size(), count, store);
  }
}

void finish_avg(Type type, void* to, const void* from, size_t count, unsigned ranks) {
  HCOMM_CHECK(ranks > 0, "finish the average of no ranks");
  if (ranks == 1) {
    if (to != from) copy_bytes(to, from, count * size_of(type));
  } else {
    kernels().divide[index(type)](to, from, count, ranks);
  }
}

void scale(Type type, void* to, const void* from, const void* scalar, size_t count) {
  kernels().scale[index(type)](to, from, scalar, count);
}

void copy_bytes(void* to, const void* from, size_t bytes, Store store) {
  if (bytes == 0) return;
  if (store == Store::streaming)
    kernels().stream(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

std::string_view kernels_in_force() {
  return kernels().name;
}

void select_kernels(std::string_view name) {
  if (name.empty()) {
    in_force.store(best(), std::memory_order_relaxed);
    return;
  }
  for (const Candidate& candidate : kBestFirst) {
    if (candidate.table->name != name) continue;
    if (!candidate.runs_here())
      fail(Code::unavailable, "select the {} kernels: this processor lacks them; it can run {}",
           name, best()->name);
    in_force.store(candidate.table, std::memory_order_relaxed);
    return;
  }
  fail(Code::invalid_argument, "select kernels '{}': expected avx512, avx2, scalar or nothing",
       name);
}

}  // namespace hcomm
