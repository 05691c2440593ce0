// SPDX-License-Identifier: Apache-2.0
// The two buffers of a rank, and whether this machine has room for them. Allocated once for the
// largest size; every operation uses their beginning.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "hcc-bench/check/verify.h"
#include "hcc-bench/sweep.h"
#include "hcc-bench/world.h"

namespace hcomm::bench {

struct Capacity {
  size_t send = 0, recv = 0;  // bytes
};
// What one rank needs for one size of a sweep.
Capacity capacity(const Sweep& sweep, size_t bytes, int rank, int ranks);
// For all sizes of all of them.
Capacity capacity(std::span<const Sweep> sweeps, int rank, int ranks);

// Leaves out the sizes that do not fit into memory where `fit`, and says so; else throws
// invalid_argument with the largest that does. Collective: all ranks decide alike.
enum class TooLarge : uint8_t { refuse, leave_out };
void fit_to_memory(World& world, std::vector<Sweep>& sweeps, TooLarge policy);

class Buffers {
 public:
  // memory: plain (mmap) or hcomm (hcommMemAlloc). Throws system.
  Buffers(Capacity capacity, std::string_view memory);
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();
  // Where the operation of a sweep has its input and result on one rank.
  Task task(const Sweep& sweep, size_t bytes, const Place& place) const;

 private:
  void* allocate(size_t bytes) const;
  void release(void* memory, size_t bytes) const;

  Capacity capacity_;
  bool shared_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

}  // namespace hcomm::bench
