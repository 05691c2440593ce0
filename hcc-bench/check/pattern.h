// SPDX-License-Identifier: Apache-2.0
// The data: what each rank puts into its input, and what must come out. Values are small whole
// numbers that every type holds exactly, chosen per operator so that no partial result rounds
// either: a check is exact, in every type, for any order of the reduction. They repeat after a
// prime number of elements, so filling and checking a gigabyte is a matter of copying and comparing
// a small table, while a chunk that lands elsewhere is seen. `epoch` changes all of them: data left
// from an earlier operation are seen too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "datatype/types.h"

namespace hcomm::bench {

inline constexpr size_t kPeriod = 4093;
inline constexpr double kPremulFactor = 2;  // of the operator premul_sum

class Pattern {
 public:
  // op: nothing for operations that only move data.
  Pattern(Type type, std::optional<Op> op, int ranks, uint64_t epoch);

  Type type() const { return type_; }
  int ranks() const { return ranks_; }
  Pattern before() const { return {type_, op_, ranks_, epoch_ - 1}; }
  double value(int rank, size_t element) const;  // of a rank's input
  double reduced(size_t element) const;          // over all ranks
  // Results may differ from `reduced` by this share: avg rounds once.
  double tolerance() const { return tolerance_; }

 private:
  bool contributes(int rank, size_t slot) const;

  Type type_;
  std::optional<Op> op_;
  int ranks_;
  uint64_t epoch_;
  int most_ = 1;          // values are 0..most
  int contributors_ = 0;  // that are not neutral in one element
  double tolerance_ = 0;
};

// The first elements of a sequence, at most kPeriod, as bytes of the type.
class Values {
 public:
  static Values of_rank(const Pattern& pattern, int rank, size_t first, size_t count);
  static Values of_result(const Pattern& pattern, size_t first, size_t count);
  void fill(void* to, size_t count) const;
  // The first element of `data` that differs in its bytes, or count.
  size_t first_difference(const void* data, size_t count) const;
  double at(size_t element) const;

 private:
  Values(Type type, size_t count);

  Type type_;
  size_t element_bytes_, period_;
  std::vector<unsigned char> bytes_;
};

}  // namespace hcomm::bench
