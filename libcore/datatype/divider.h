// SPDX-License-Identifier: Apache-2.0
// Division of integers by one divisor, as a multiplication by its reciprocal: exact for every
// dividend (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994,
// figure 4.1), rounds toward zero. Included by body.h alone (see lanes.h). Absent: zero divisors.
#pragma once

#include <cstdint>
#include <type_traits>

namespace hcomm {
namespace {

__extension__ typedef unsigned __int128 Wide128;

template <typename T>
class Divider {
 public:
  explicit Divider(uint32_t divisor) {
    if (kBits < 32 && divisor > kLargest) divisor = kLargest;  // above all dividends as well
    const int bits = divisor == 1 ? 0 : 32 - __builtin_clz(divisor - 1);  // 2^bits >= divisor
    const auto above = static_cast<Wide>((uint64_t{1} << bits) - divisor);
    reciprocal_ = static_cast<Magnitude>((above << kBits) / divisor + 1);
    first_shift_ = bits > 0 ? 1 : 0;
    second_shift_ = bits > 0 ? bits - 1 : 0;
  }

  T quotient(T value) const {
    const auto magnitude = static_cast<Magnitude>(value);
    if constexpr (std::is_signed_v<T>) {
      const auto sign = static_cast<Magnitude>(value < 0 ? -1 : 0);
      const auto positive = static_cast<Magnitude>((magnitude ^ sign) - sign);
      return static_cast<T>((divided(positive) ^ sign) - sign);
    } else {
      return static_cast<T>(divided(magnitude));
    }
  }

 private:
  // Bytes are divided as 16-bit numbers, which processors multiply in vectors.
  template <typename Eight, typename Four, typename One>
  using BySize =
      std::conditional_t<sizeof(T) == 8, Eight, std::conditional_t<sizeof(T) == 4, Four, One>>;
  using Magnitude = BySize<uint64_t, uint32_t, uint16_t>;
  using Wide = BySize<Wide128, uint64_t, uint32_t>;
  static constexpr int kBits = sizeof(Magnitude) * 8;
  static constexpr uint32_t kLargest = 0xffff;

  Magnitude divided(Magnitude value) const {
    const auto high = static_cast<Magnitude>(static_cast<Wide>(reciprocal_) * value >> kBits);
    return static_cast<Magnitude>((high + ((value - high) >> first_shift_)) >> second_shift_);
  }

  Magnitude reciprocal_;
  int first_shift_, second_shift_;
};

}  // namespace
}  // namespace hcomm
