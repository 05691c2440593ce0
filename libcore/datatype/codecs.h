// SPDX-License-Identifier: Apache-2.0
// Codecs: what a vector of elements in memory becomes while operators are applied to it (decode),
// and how the result goes back (encode), the rounding included. A codec turns one vector into
// kParts vectors of the type that is computed in; the order of elements within the parts is the
// codec's own, chosen so that nothing has to cross lanes. Included by body.h alone (see lanes.h).
// Absent: operators.
#pragma once

#include "datatype/formats.h"
#include "datatype/lanes.h"

namespace hcomm {
namespace {

template <typename V, size_t N>
struct Parts {
  static constexpr size_t kCount = N;
  V v[N];
};

template <typename T>
struct IntegerCodec {
  using Computed = T;
  using Decoded = Parts<Vector<T>, 1>;
  static constexpr size_t kElementBytes = sizeof(T);
  HCOMM_INLINE static Decoded decode(Raw raw) { return {{as<T>(raw)}}; }
  HCOMM_INLINE static Raw encode(Decoded parts) { return as<uint64_t>(parts.v[0]); }
};

// Every NaN leaves as the canonical one: which operand's payload an addition keeps depends on how
// the compiler orders them.
template <typename T, typename Bits, Bits kNan>
struct FloatCodec {
  using Computed = T;
  using Decoded = Parts<Vector<T>, 1>;
  static constexpr size_t kElementBytes = sizeof(T);
  HCOMM_INLINE static Decoded decode(Raw raw) { return {{as<T>(raw)}}; }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    const Vector<T> value = parts.v[0];
    return as<uint64_t>(select(value == value, value, as<T>(splat<Bits>(kNan))));
  }
};
using Float32Codec = FloatCodec<float, uint32_t, 0x7fc00000u>;
using Float64Codec = FloatCodec<double, uint64_t, 0x7ff8000000000000u>;

constexpr uint32_t kSign32 = 0x80000000u, kInfinity32 = 0x7f800000u, kNan32 = 0x7fc00000u;

template <typename Format>
constexpr int kFormatBits = 1 + Format::kExponentBits + Format::kMantissaBits;

// Codes in the high bits of 32-bit lanes, whatever stands below them, to float32; exact. Bits are
// moved to where float32 has them and the exponent is rebased; a subnormal is read with the
// smallest exponent and an implicit one, which is then subtracted.
template <typename Format>
HCOMM_INLINE Vector<float> float_from_high(Vector<uint32_t> high) {
  constexpr uint32_t kMagnitude = kSign32 - (1u << (32 - kFormatBits<Format>));
  constexpr int kShift = 8 - Format::kExponentBits;
  constexpr uint32_t kRebase = uint32_t{127 - Format::kBias} << 23, kOne = 1u << 23;
  constexpr uint32_t kLargest = Format::kInfinity << (23 - Format::kMantissaBits);
  const Vector<uint32_t> magnitude = (high & kMagnitude) >> kShift;
  const auto small = as<uint32_t>(as<int32_t>(magnitude) < int32_t{kOne});
  Vector<uint32_t> bits = magnitude + kRebase + (small & kOne);
  if constexpr (Format::kHasInfinity)
    bits += as<uint32_t>(as<int32_t>(magnitude) >= int32_t{kLargest}) & kRebase;
  else
    bits |= as<uint32_t>(as<int32_t>(magnitude) > int32_t{kLargest}) & kNan32;
  const Vector<float> value = as<float>(bits) - as<float>(small & (kRebase + kOne));
  return as<float>(as<uint32_t>(value) | (high & kSign32));
}

// float32 to codes in the low bits of 32-bit lanes, to nearest even. A power of two whose unit in
// the last place is the code's is added: the sum's low bits are the rounded significand, and a
// carry goes on into the exponent by itself; subnormals use the smallest exponent.
template <typename Format>
HCOMM_INLINE Vector<uint32_t> float_to_code(Vector<float> value) {
  constexpr int kDropped = 23 - Format::kMantissaBits;
  constexpr int32_t kSmallest = (128 - Format::kBias) << 23;
  constexpr int32_t kBeyond = (127 + Format::kBias + 2) << 23;  // above all numbers: stays finite
  const Vector<uint32_t> bits = as<uint32_t>(value);
  const auto magnitude = as<int32_t>(bits & ~kSign32);
  const Vector<int32_t> held = select(magnitude < kBeyond, magnitude, splat<int32_t>(kBeyond));
  Vector<int32_t> exponent = held & int32_t{kInfinity32};
  exponent = select(exponent > kSmallest, exponent, splat<int32_t>(kSmallest));
  const Vector<int32_t> anchor = exponent + (kDropped << 23);
  const auto sum = as<int32_t>(as<float>(held) + as<float>(anchor));
  Vector<int32_t> code = ((exponent - kSmallest) >> kDropped) + (sum - anchor);
  const auto sign = as<int32_t>((bits & kSign32) >> (32 - kFormatBits<Format>));
  constexpr int32_t kLargest = Format::kInfinity;
  const Vector<int32_t> nan = splat<int32_t>(Format::kNan);
  if constexpr (Format::kHasInfinity) {
    code = select(code < kLargest, code, splat<int32_t>(kLargest));
    return as<uint32_t>(select(magnitude > int32_t{kInfinity32}, nan, code | sign));
  } else {
    return as<uint32_t>(select(code > kLargest, nan, code | sign));
  }
}

// bfloat16: the high half of a float32. Even elements are the low halves of 32-bit lanes, odd ones
// the high halves.
struct BFloat16Codec {
  using Computed = float;
  using Decoded = Parts<Vector<float>, 2>;
  static constexpr size_t kElementBytes = 2;
  HCOMM_INLINE static Decoded decode(Raw raw) {
    const auto bits = as<uint32_t>(raw);
    return {{as<float>(bits << 16), as<float>(bits & 0xffff0000u)}};
  }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    return as<uint64_t>(rounded(parts.v[0]) >> 16 | (rounded(parts.v[1]) & 0xffff0000u));
  }

 private:
  HCOMM_INLINE static Vector<uint32_t> rounded(Vector<float> value) {
    const auto bits = as<uint32_t>(value);
    const Vector<uint32_t> up = bits + 0x7fffu + (bits >> 16 & 1u);
    return select(value == value, up, splat<uint32_t>(kNan32));
  }
};

#if defined(HCOMM_LANES_HALF)

struct Float16Codec {
  using Computed = float;
  using Decoded = Parts<Vector<float>, 2>;
  static constexpr size_t kElementBytes = 2;
  HCOMM_INLINE static Decoded decode(Raw raw) {
    Decoded parts;
    widen_halves(raw, parts.v[0], parts.v[1]);
    return parts;
  }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    return narrow_halves(clean(parts.v[0]), clean(parts.v[1]));
  }

 private:
  HCOMM_INLINE static Vector<float> clean(Vector<float> value) {
    return select(value == value, value, as<float>(splat<uint32_t>(kNan32)));
  }
};

// float16 holds every number of the float8 formats: float8e5m2 is its high byte, and float8e4m3 has
// its layout but for an exponent of other bias, so what float16 reads there is 1 / kHalfScale of
// it.
template <typename Format>
constexpr int kHalfScale = Format::kHasInfinity ? 1 : 256;

// The bytes at even places first, then those at odd ones.
template <typename Format>
HCOMM_INLINE Raw half_from_high(Vector<uint16_t> high) {
  if constexpr (Format::kHasInfinity) return as<uint64_t>(high & splat<uint16_t>(0xff00));
  const Vector<uint16_t> magnitude = high >> 1 & splat<uint16_t>(0x3f80);
  const auto nan = as<uint16_t>(magnitude == splat<uint16_t>(0x3f80));
  return as<uint64_t>(magnitude | (nan & splat<uint16_t>(0x7e00)) |
                      (high & splat<uint16_t>(0x8000)));
}

template <typename Format>
HCOMM_INLINE Parts<Vector<float>, 4> halves_from_float8(Raw raw) {
  const auto words = as<uint16_t>(raw);
  Parts<Vector<float>, 4> parts;
  widen_halves(half_from_high<Format>(words << 8), parts.v[0], parts.v[1]);
  widen_halves(half_from_high<Format>(words), parts.v[2], parts.v[3]);
  return parts;
}

template <typename Format>
struct Float8Codec {
  using Computed = float;
  using Decoded = Parts<Vector<float>, 4>;
  static constexpr size_t kElementBytes = 1;
  HCOMM_INLINE static Decoded decode(Raw raw) {
    Decoded parts = halves_from_float8<Format>(raw);
    if constexpr (kHalfScale<Format> != 1)
      for (Vector<float>& part : parts.v) part *= static_cast<float>(kHalfScale<Format>);
    return parts;
  }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    const Vector<uint16_t> even =
        pack_words(float_to_code<Format>(parts.v[0]), float_to_code<Format>(parts.v[1]));
    const Vector<uint16_t> odd =
        pack_words(float_to_code<Format>(parts.v[2]), float_to_code<Format>(parts.v[3]));
    return as<uint64_t>(even | odd << 8);
  }
};

// The same for one sum or product of two float8, faster: rounded to float16 and then to float8. The
// first rounding never makes a tie of what was none, since float16 has more than twice float8's
// bits (tests/datatype proves it over all pairs). Computed at float16's scale; what `kScale` an
// operator then lacks is made up.
template <typename Format, int kScale>
struct Float8OfTwoCodec {
  using Computed = float;
  using Decoded = Parts<Vector<float>, 4>;
  static constexpr size_t kElementBytes = 1;
  HCOMM_INLINE static Decoded decode(Raw raw) { return halves_from_float8<Format>(raw); }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    if constexpr (kScale != 1)
      for (Vector<float>& part : parts.v) part *= static_cast<float>(kScale);
    const auto even = as<uint16_t>(narrow_halves(parts.v[0], parts.v[1]));
    const auto odd = as<uint16_t>(narrow_halves(parts.v[2], parts.v[3]));
    const auto magnitude = as<int8_t>(rounded(even) | rounded(odd) << 8);
    const auto sign =
        as<int8_t>((even >> 8 & splat<uint16_t>(0x80)) | (odd & splat<uint16_t>(0x8000)));
    constexpr auto kLargest = static_cast<int8_t>(Format::kInfinity);
    constexpr auto kNan = static_cast<int8_t>(Format::kNan);
    return as<uint64_t>(
        select(magnitude > splat<int8_t>(kLargest), splat<int8_t>(kNan), magnitude | sign));
  }

 private:
  // Magnitudes of halves to those of float8, 127 for all that is larger.
  HCOMM_INLINE static Vector<uint16_t> rounded(Vector<uint16_t> halves) {
    constexpr int kDropped = 10 - Format::kMantissaBits;
    constexpr uint16_t kBelowHalf = (1 << (kDropped - 1)) - 1;
    const Vector<uint16_t> magnitude = halves & splat<uint16_t>(0x7fff);
    const Vector<uint16_t> odd = magnitude >> kDropped & splat<uint16_t>(1);
    const Vector<uint16_t> code = (magnitude + splat<uint16_t>(kBelowHalf) + odd) >> kDropped;
    return select(code < splat<uint16_t>(127), code, splat<uint16_t>(127));
  }
};

#else

// Any narrow format, by arithmetic alone: part k holds the k-th element of each 32-bit lane.
template <typename Format>
struct NarrowCodec {
  static constexpr int kBits = kFormatBits<Format>;
  using Computed = float;
  using Decoded = Parts<Vector<float>, 32 / kBits>;
  static constexpr size_t kElementBytes = kBits / 8;
  HCOMM_INLINE static Decoded decode(Raw raw) {
    Decoded parts;
    for (size_t part = 0; part < Decoded::kCount; part++)
      parts.v[part] =
          float_from_high<Format>(as<uint32_t>(raw) << shift(Decoded::kCount - 1 - part));
    return parts;
  }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    Vector<uint32_t> codes{};
    for (size_t part = 0; part < Decoded::kCount; part++)
      codes |= float_to_code<Format>(parts.v[part]) << shift(part);
    return as<uint64_t>(codes);
  }

 private:
  static constexpr int shift(size_t part) { return static_cast<int>(part) * kBits; }
};
using Float16Codec = NarrowCodec<Float16Format>;
template <typename Format>
using Float8Codec = NarrowCodec<Format>;

#endif

// Narrow floats as integers of the same order, for min and max: negative codes are turned over, so
// -0 is below +0. NaN becomes the integer that wins, `kWinner`.
template <typename Format, typename T, T kWinner>
struct OrderCodec {
  using Computed = T;
  using Decoded = Parts<Vector<T>, 1>;
  static constexpr size_t kElementBytes = sizeof(T);
  HCOMM_INLINE static Decoded decode(Raw raw) {
    const auto code = as<T>(raw);
    return {{select(is_nan(code), splat<T>(kWinner), turned(code))}};
  }
  HCOMM_INLINE static Raw encode(Decoded parts) {
    const Vector<T> code = turned(parts.v[0]);
    return as<uint64_t>(select(is_nan(code), splat<T>(Format::kNan), code));
  }

 private:
  static constexpr T kMagnitude = static_cast<T>((1u << (kFormatBits<Format> - 1)) - 1);
  HCOMM_INLINE static Vector<T> turned(Vector<T> code) {
    return code ^ (as<T>(code < Vector<T>{}) & splat<T>(kMagnitude));
  }
  HCOMM_INLINE static auto is_nan(Vector<T> code) {
    return (code & splat<T>(kMagnitude)) > splat<T>(Format::kInfinity);
  }
};

}  // namespace
}  // namespace hcomm
