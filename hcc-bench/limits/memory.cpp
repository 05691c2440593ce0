// SPDX-License-Identifier: Apache-2.0
// What one core does with memory: copies, sums, reads. With the library's own kernels, the best for
// this processor: all that it reduces and stages is made of these.
#include "hcc-bench/measure/memory.h"

#include <fmt/format.h>

#include <cstring>

#include "base/copy.h"
#include "datatype/kernels.h"
#include "hcc-bench/limits/crew.h"

namespace hcomm::bench::limits {

namespace {

struct Arrays {
  float *to, *a, *b;
  size_t bytes;
  size_t count() const { return bytes / sizeof(float); }
  Arrays piece(size_t at, size_t length) const {
    const size_t skipped = at / sizeof(float);
    return {to + skipped, a + skipped, b + skipped, length};
  }
};

// What is larger is walked through piece by piece, each of which ends within a time slice: on a
// busy machine no single pass over all of it would be undisturbed.
constexpr size_t kPiece = 2 * kMiB;

uint64_t read_all(const Arrays& arrays) {
  const auto* words = reinterpret_cast<const uint64_t*>(arrays.a);
  uint64_t all[8] = {};  // independent, so that the loop becomes vectors
  for (size_t i = 0; i < arrays.bytes / sizeof(uint64_t); i += 8)
    for (size_t lane = 0; lane < 8; lane++) all[lane] ^= words[i + lane];
  uint64_t result = 0;
  for (const uint64_t each : all) result ^= each;
  return result;
}

void sum(const Arrays& arrays, const float* a, Store store) {
  reduce2(Type::float32, Op::sum, arrays.to, a, arrays.b, arrays.count(), store);
}

enum class When : uint8_t { always, far_from_cache };

struct Kernel {
  const char* name;
  void (*run)(const Arrays&);
  When when;
  const char* bounds;
};

// NOLINTNEXTLINE: its value keeps the reads
volatile uint64_t g_read;

constexpr Kernel kKernels[] = {
    {"copy", [](const Arrays& x) { std::memcpy(x.to, x.a, x.bytes); }, When::always,
     "staging, all-gather, broadcast"},
    {"copy_streaming", [](const Arrays& x) { copy_bytes(x.to, x.a, x.bytes, Store::streaming); },
     When::far_from_cache, "the same, outputs past the caches"},
    {"read", [](const Arrays& x) { g_read = read_all(x); }, When::always, "inputs of a reduction"},
    {"sum_in_place", [](const Arrays& x) { sum(x, x.to, Store::cached); }, When::always,
     "reduction into one's own buffer"},
    {"sum", [](const Arrays& x) { sum(x, x.a, Store::cached); }, When::always,
     "reduction out of place"},
    {"sum_streaming", [](const Arrays& x) { sum(x, x.a, Store::streaming); }, When::far_from_cache,
     "the same, outputs past the caches"},
};

Timed time_kernel(const Request& request, const Kernel& kernel, size_t bytes) {
  constexpr size_t kArrays = 3;
  if (bytes * kArrays > available_bytes() / 2)
    fail(Code::unavailable, "needs {} of memory", size_text(2 * kArrays * bytes));
  return run_alone(request, [&](Member& member) {
    const Mapping to(bytes, Sharing::own), a(bytes, Sharing::own), b(bytes, Sharing::own);
    to.fill(0);
    a.fill(1);
    b.fill(0);  // sums in place stay what they are
    const Arrays arrays{to.as<float>(), a.as<float>(), b.as<float>(), bytes};
    if (bytes <= 4 * kMiB) return member.time([&] { kernel.run(arrays); });
    size_t at = 0;
    member.time(
        [&] {
          kernel.run(arrays.piece(at, kPiece));
          at = (at + kPiece) % bytes;
        },
        static_cast<double>(kPiece) / static_cast<double>(bytes));
  });
}

}  // namespace

void measure_memory(const Request& request) {
  const size_t beyond = round_up(std::clamp(4 * last_level_cache_bytes(), 64 * kMiB, kGiB), kPiece);
  for (const Kernel& kernel : kKernels)
    for (const size_t bytes : {16 * kKiB, 256 * kKiB, 4 * kMiB, beyond}) {
      if (kernel.when == When::far_from_cache && bytes < 4 * kMiB) continue;
      add_measured(
          request,
          {.section = "memory", .name = kernel.name, .bytes = bytes, .bounds = kernel.bounds},
          [&] { return time_kernel(request, kernel, bytes); });
    }
}

}  // namespace hcomm::bench::limits
