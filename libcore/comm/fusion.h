// SPDX-License-Identifier: Apache-2.0
// Small all-reduces that follow one another in a group travel as one: their inputs are packed into
// memory of ours, reduced there, and unpacked. Worth it where latency is most of the price; the
// cost model says so, from what all ranks share, so that all merge alike. In deterministic mode the
// bits are the same. Owned by a batch, which calls pack before and unpack after.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "comm/call.h"

namespace hcomm::comm {

class Fusion {
 public:
  // All-reduces of one type and operator. Throws bad_alloc.
  explicit Fusion(std::span<const Call> parts);
  const Call& call() const { return call_; }  // what runs for them
  void pack();
  void unpack() const;

  static Call merged(std::span<const Call> parts);  // the same, without memory

 private:
  std::vector<Call> parts_;
  std::vector<std::byte> packed_;
  Call call_;
};

// Of all-reduces that follow one another: the first that reads or writes what an earlier one
// writes; calls.size(): none does. Merged or not, such calls would not mean the same.
size_t first_dependent(std::span<const Call> calls);

struct Prices {
  std::function<double(const Call&)> predict_us;
  double copy_us_per_byte;
};
// How many of the first calls are best merged into one; 1: the first stays alone.
size_t worth_merging(std::span<const Call> calls, const Prices& prices);

}  // namespace hcomm::comm
