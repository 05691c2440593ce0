// SPDX-License-Identifier: Apache-2.0
// The narrow floating-point formats as numbers: what the kernels and the conversions of single
// values are derived from. float8 as OCP defines it. Absent: code; this header may be included
// by files that are compiled for different processors.
#pragma once

#include <cstdint>

namespace hcomm {

// `infinity` is the largest code that is no NaN; in a format without one it is the largest number,
// and the code above it, the NaN, is what overflow gives.
struct Float16Format {
  static constexpr int kExponentBits = 5, kMantissaBits = 10, kBias = 15;
  static constexpr uint32_t kInfinity = 0x7c00, kNan = 0x7e00;
  static constexpr bool kHasInfinity = true;
};
struct BFloat16Format {
  static constexpr int kExponentBits = 8, kMantissaBits = 7, kBias = 127;
  static constexpr uint32_t kInfinity = 0x7f80, kNan = 0x7fc0;
  static constexpr bool kHasInfinity = true;
};
struct Float8E4M3Format {
  static constexpr int kExponentBits = 4, kMantissaBits = 3, kBias = 7;
  static constexpr uint32_t kInfinity = 0x7e, kNan = 0x7f;
  static constexpr bool kHasInfinity = false;
};
struct Float8E5M2Format {
  static constexpr int kExponentBits = 5, kMantissaBits = 2, kBias = 15;
  static constexpr uint32_t kInfinity = 0x7c, kNan = 0x7e;
  static constexpr bool kHasInfinity = true;
};

}  // namespace hcomm
