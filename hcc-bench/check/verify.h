// SPDX-License-Identifier: Apache-2.0
// Filling the buffers of one operation and checking what came out: every element of the result,
// that the input was not written, and that nothing was written beyond the result. A fault is told
// with rank, element, expected, got and a guess at what happened.
#pragma once

#include <cstdint>
#include <string>

#include "hcc-bench/check/pattern.h"
#include "hcc-bench/operation.h"

namespace hcomm::bench {

inline constexpr size_t kGuardBytes = 64;  // behind what a buffer is asked to hold

// The buffers of one operation on one rank. In place, `send` or `recv` lies within the other.
struct Task {
  Operation operation;
  Place place;
  Layout layout;
  void* send;
  void* recv;
  bool in_place;
};

// Writes this rank's input, and what must be overwritten or left alone where there is none.
void prepare(const Task& task, const Pattern& pattern);
// Changes one byte of this rank's result, where it has one: the check must see it.
void spoil(const Task& task, Type type);

struct Verdict {
  uint64_t wrong = 0;  // elements
  std::string text;    // "element 17: expected 28, got 21 (looks like rank 3's data missing)"
};
Verdict verify(const Task& task, const Pattern& pattern);

}  // namespace hcomm::bench
