// SPDX-License-Identifier: Apache-2.0
// One table of all reduction kernels: past the last-level cache beside a copy of the same buffers,
// in the nearest cache beside the scalar kernels (which are vectors of 16 bytes where the compiler
// has them). What is compared runs in turn, so that a busy machine disturbs both alike. GB/s are
// 1e9 bytes a second that are read and written: of three buffers for a kernel, of two for a copy;
// past the cache both with streaming stores.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "datatype/kernels.h"

namespace hcomm {
namespace {

constexpr size_t kFar = 128 * kMiB, kPiece = kMiB, kNear = 8 * kKiB;

class Buffer {
 public:
  Buffer() : data_(static_cast<char*>(std::aligned_alloc(2 * kMiB, kFar))) {}
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  char* data() const { return data_; }
  // Small numbers, of which no operator makes infinities or subnormals.
  void fill(Type type) const {
    constexpr size_t kPeriod = 64;
    const size_t bytes = size_of(type);
    for (size_t i = 0; i < kPeriod; i++)
      store_value(type, data_ + i * bytes, static_cast<double>(i % 8) / 16 + 1);
    for (size_t done = kPeriod * bytes; done < kFar; done *= 2)
      std::memcpy(data_ + done, data_, std::min(done, kFar - done));
  }

 private:
  char* data_;
};

template <typename Work>
int64_t time_of(Work work) {
  const int64_t start_ns = now_ns();
  work();
  return now_ns() - start_ns;
}

struct Case {
  Type type;
  Op op;
  const Buffer &to, &a, &b;
  void run(size_t at, size_t bytes, Store store) const {
    reduce2(type, op, to.data() + at, a.data() + at, b.data() + at, bytes / size_of(type), store);
  }
};

struct Far {
  int64_t copy_ns = 0, fold_ns = 0;
};

int64_t median(std::vector<int64_t>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Pieces that end within a time slice, a copy of one here and a fold of one half a buffer away, so
// that all come from memory. The median: a piece is seldom disturbed, the least one is mere luck.
Far time_far(const Case& c, int rounds) {
  std::vector<int64_t> copies, folds;
  select_kernels("");
  for (int round = 0; round < rounds; round++)
    for (size_t at = 0; at < kFar; at += kPiece) {
      const size_t there = (at + kFar / 2) % kFar;
      copies.push_back(time_of(
          [&] { copy_bytes(c.to.data() + at, c.a.data() + at, kPiece, Store::streaming); }));
      folds.push_back(time_of([&] { c.run(there, kPiece, Store::streaming); }));
    }
  return {median(copies), median(folds)};
}

struct Near {
  int64_t scalar_ns = INT64_MAX, best_ns = INT64_MAX;
};

Near time_near(const Case& c, int rounds) {
  constexpr int kTimes = 50;
  const auto several = [&] {
    for (int i = 0; i < kTimes; i++) c.run(0, kNear, Store::cached);
  };
  Near near;
  for (int round = 0; round < 20 * rounds; round++) {
    select_kernels("scalar");
    near.scalar_ns = std::min(near.scalar_ns, time_of(several));
    select_kernels("");
    near.best_ns = std::min(near.best_ns, time_of(several));
  }
  near.best_ns /= kTimes;
  near.scalar_ns /= kTimes;
  return near;
}

double rate(size_t bytes, int64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

void print_all(int rounds) {
  const Buffer to, a, b;
  select_kernels("");
  fmt::print("# {} kernels; GB/s read and written, {} rounds in turn with what is beside\n",
             kernels_in_force(), rounds);
  fmt::print("# {:<11} {:<10}  {:>8} {:>8} {:>7}  {:>8} {:>8} {:>7}\n", "type", "operator", "far",
             "copy", "%copy", "near", "scalar", "ratio");
  for (int t = 0; t < kTypes; t++) {
    const auto type = static_cast<Type>(t);
    for (const Buffer* each : {&to, &a, &b}) each->fill(type);
    for (int o = 0; o < kOps; o++) {
      const auto op = static_cast<Op>(o);
      if (!allowed(op, type) || op == Op::avg || op == Op::premul_sum) continue;  // they are sums
      const Case c{type, op, to, a, b};
      const Far far = time_far(c, rounds);
      const Near near = time_near(c, rounds);
      fmt::print("  {:<11} {:<10}  {:>8.2f} {:>8.2f} {:>7.1f}  {:>8.2f} {:>8.2f} {:>7.2f}\n",
                 name(type), name(op), rate(3 * kPiece, far.fold_ns), rate(2 * kPiece, far.copy_ns),
                 150.0 * static_cast<double>(far.copy_ns) / static_cast<double>(far.fold_ns),
                 rate(3 * kNear, near.best_ns), rate(3 * kNear, near.scalar_ns),
                 static_cast<double>(near.scalar_ns) / static_cast<double>(near.best_ns));
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace hcomm

int main(int argc, char** argv) {
  hcomm::print_all(argc > 1 ? std::max(1, std::atoi(argv[1])) : 3);
}
