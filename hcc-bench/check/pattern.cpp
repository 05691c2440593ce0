// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/check/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "datatype/kernels.h"

namespace hcomm::bench {

namespace {

struct Range {
  int whole;       // all whole numbers up to it are exact
  double epsilon;  // relative step; 0 for integers
};

Range range_of(Type type) {
  switch (type) {
    case Type::float8e5m2:
      return {8, 0x1p-2};
    case Type::float8e4m3:
      return {16, 0x1p-3};
    case Type::bfloat16:
      return {256, 0x1p-7};
    case Type::float16:
      return {2048, 0x1p-10};
    case Type::float32:
      return {1 << 24, 0x1p-23};
    case Type::float64:
      return {1 << 30, 0x1p-52};
    case Type::int8:
    case Type::uint8:
      return {127, 0};
    default:
      return {1 << 30, 0};
  }
}

bool extreme(std::optional<Op> op) {
  return op == Op::min || op == Op::max;
}

bool bitwise(std::optional<Op> op) {
  return op == Op::band || op == Op::bor || op == Op::bxor;
}

}  // namespace

Pattern::Pattern(Type type, std::optional<Op> op, int ranks, uint64_t epoch)
    : type_(type), op_(op), ranks_(ranks), epoch_(epoch), contributors_(ranks) {
  const Range range = range_of(type);
  if (!op_) {
    most_ = std::min(range.whole, (1 << 20) - 1);
  } else if (bitwise(op_)) {
    most_ = 127;
  } else if (extreme(op_)) {
    most_ = std::min(range.whole, 127);
  } else if (op_ == Op::prod) {
    contributors_ = std::min(ranks, 3);
    most_ = 2;
  } else {  // the sum of all must stay exact
    const int room =
        op_ == Op::premul_sum ? range.whole / static_cast<int>(kPremulFactor) : range.whole;
    contributors_ = room / ranks >= 7 ? ranks : std::min(ranks, 4);
    most_ = std::clamp(room / contributors_, 1, 7);
    if (op_ == Op::avg) tolerance_ = range.epsilon;
  }
}

bool Pattern::contributes(int rank, size_t slot) const {
  if (contributors_ >= ranks_) return true;
  const auto n = static_cast<size_t>(ranks_), first = slot % n;
  return (static_cast<size_t>(rank) + n - first) % n < static_cast<size_t>(contributors_);
}

double Pattern::value(int rank, size_t element) const {
  const size_t slot = element % kPeriod;
  const uint64_t hash =
      hash_number(slot, hash_number(static_cast<uint64_t>(rank) + 1, kHashSeed + epoch_));
  const double drawn = static_cast<double>((hash >> 8) % static_cast<uint64_t>(most_ + 1));
  if (op_ == Op::band) return static_cast<double>((hash >> 8 | hash >> 20 | hash >> 40) & 127);
  if (op_ == Op::prod) return contributes(rank, slot) && hash % 2 == 0 ? 2 : 1;
  if (extreme(op_) && (!is_integer(type_) || is_signed(type_)))
    return drawn - std::floor(most_ / 2.0);
  return contributes(rank, slot) ? drawn : 0;
}

double Pattern::reduced(size_t element) const {
  double result = value(0, element);
  for (int rank = 1; rank < ranks_; rank++) {
    const double next = value(rank, element);
    const auto a = static_cast<uint64_t>(std::fabs(result)), b = static_cast<uint64_t>(next);
    switch (*op_) {
      case Op::sum:
      case Op::avg:
      case Op::premul_sum:
        result += next;
        break;
      case Op::prod:
        result *= next;
        break;
      case Op::max:
        result = std::max(result, next);
        break;
      case Op::min:
        result = std::min(result, next);
        break;
      case Op::band:
        result = static_cast<double>(a & b);
        break;
      case Op::bor:
        result = static_cast<double>(a | b);
        break;
      case Op::bxor:
        result = static_cast<double>(a ^ b);
        break;
    }
  }
  if (op_ == Op::premul_sum) return result * kPremulFactor;
  if (op_ != Op::avg) return result;
  return is_integer(type_) ? std::trunc(result / ranks_) : result / ranks_;
}

Values::Values(Type type, size_t count)
    : type_(type), element_bytes_(size_of(type)), period_(std::min(count, kPeriod)) {
  bytes_.resize(period_ * element_bytes_);
}

Values Values::of_rank(const Pattern& pattern, int rank, size_t first, size_t count) {
  Values values(pattern.type(), count);
  for (size_t i = 0; i < values.period_; i++)
    store_value(pattern.type(), &values.bytes_[i * values.element_bytes_],
                pattern.value(rank, first + i));
  return values;
}

Values Values::of_result(const Pattern& pattern, size_t first, size_t count) {
  Values values(pattern.type(), count);
  for (size_t i = 0; i < values.period_; i++)
    store_value(pattern.type(), &values.bytes_[i * values.element_bytes_],
                pattern.reduced(first + i));
  return values;
}

void Values::fill(void* to, size_t count) const {
  auto* bytes = static_cast<unsigned char*>(to);
  for (size_t done = 0; done < count; done += period_)
    std::memcpy(bytes + done * element_bytes_, bytes_.data(),
                std::min(period_, count - done) * element_bytes_);
}

size_t Values::first_difference(const void* data, size_t count) const {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t done = 0; done < count; done += period_) {
    const size_t part = std::min(period_, count - done) * element_bytes_;
    const unsigned char* seen = bytes + done * element_bytes_;
    if (std::memcmp(seen, bytes_.data(), part) == 0) continue;
    const auto differs = std::mismatch(seen, seen + part, bytes_.begin()).first;
    return done + static_cast<size_t>(differs - seen) / element_bytes_;
  }
  return count;
}

double Values::at(size_t element) const {
  return load_value(type_, &bytes_[element % period_ * element_bytes_]);
}

}  // namespace hcomm::bench
