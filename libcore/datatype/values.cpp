// SPDX-License-Identifier: Apache-2.0
// Single values of any type to and from double: for tests, checks and scalars, not for speed.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "datatype/formats.h"
#include "datatype/kernels.h"

namespace hcomm {

namespace {

template <typename T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void write(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <typename Format>
constexpr uint32_t kSignBit = 1u << (Format::kExponentBits + Format::kMantissaBits);

template <typename Format>
double decode(uint32_t code) {
  const uint32_t magnitude = code & (kSignBit<Format> - 1);
  const int exponent = static_cast<int>(magnitude >> Format::kMantissaBits);
  const uint32_t fraction = magnitude & ((1u << Format::kMantissaBits) - 1);
  double value;
  if (magnitude > Format::kInfinity)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (Format::kHasInfinity && magnitude == Format::kInfinity)
    value = std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(fraction, 1 - Format::kBias - Format::kMantissaBits);
  else
    value = std::ldexp(fraction + (1u << Format::kMantissaBits),
                       exponent - Format::kBias - Format::kMantissaBits);
  return (code & kSignBit<Format>) != 0 ? -value : value;
}

// Counts the value in units of the last place that its binade has: the count, rounded, carries into
// the exponent by itself.
template <typename Format>
uint32_t encode(double value) {
  constexpr int kSmallestExponent = 1 - Format::kBias;
  if (std::isnan(value)) return Format::kNan;
  const uint32_t sign = std::signbit(value) ? kSignBit<Format> : 0;
  const double magnitude = std::fabs(value);
  uint32_t code = Format::kInfinity + 1;
  if (magnitude < std::ldexp(1.0, Format::kBias + 2)) {
    const int exponent =
        magnitude > 0 ? std::max(std::ilogb(magnitude), kSmallestExponent) : kSmallestExponent;
    const double units = std::ldexp(magnitude, Format::kMantissaBits - exponent);
    code = static_cast<uint32_t>(exponent - kSmallestExponent) << Format::kMantissaBits;
    code += static_cast<uint32_t>(std::nearbyint(units));
  }
  if (code <= Format::kInfinity) return code | sign;
  return Format::kHasInfinity ? Format::kInfinity | sign : Format::kNan;
}

// To the nearest integer, ties to even; what lies outside becomes the nearest bound, NaN zero.
template <typename T>
T to_integer(double value) {
  using Limits = std::numeric_limits<T>;
  const double whole = std::nearbyint(value);
  if (std::isnan(whole)) return 0;
  if (whole <= static_cast<double>(Limits::min())) return Limits::min();
  if (whole >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(whole);
}

float to_float(double value) {
  return std::isnan(value) ? std::bit_cast<float>(0x7fc00000u) : static_cast<float>(value);
}

double to_double(double value) {
  return std::isnan(value) ? std::bit_cast<double>(uint64_t{0x7ff8000000000000u}) : value;
}

}  // namespace

double load_value(Type type, const void* from) {
  switch (type) {
    case Type::int8:
      return read<int8_t>(from);
    case Type::uint8:
      return read<uint8_t>(from);
    case Type::int32:
      return read<int32_t>(from);
    case Type::uint32:
      return read<uint32_t>(from);
    case Type::int64:
      return static_cast<double>(read<int64_t>(from));
    case Type::uint64:
      return static_cast<double>(read<uint64_t>(from));
    case Type::float16:
      return decode<Float16Format>(read<uint16_t>(from));
    case Type::float32:
      return static_cast<double>(read<float>(from));
    case Type::float64:
      return read<double>(from);
    case Type::bfloat16:
      return decode<BFloat16Format>(read<uint16_t>(from));
    case Type::float8e4m3:
      return decode<Float8E4M3Format>(read<uint8_t>(from));
    case Type::float8e5m2:
      return decode<Float8E5M2Format>(read<uint8_t>(from));
  }
  return 0;
}

void store_value(Type type, void* to, double value) {
  switch (type) {
    case Type::int8:
      return write(to, to_integer<int8_t>(value));
    case Type::uint8:
      return write(to, to_integer<uint8_t>(value));
    case Type::int32:
      return write(to, to_integer<int32_t>(value));
    case Type::uint32:
      return write(to, to_integer<uint32_t>(value));
    case Type::int64:
      return write(to, to_integer<int64_t>(value));
    case Type::uint64:
      return write(to, to_integer<uint64_t>(value));
    case Type::float16:
      return write(to, static_cast<uint16_t>(encode<Float16Format>(value)));
    case Type::float32:
      return write(to, to_float(value));
    case Type::float64:
      return write(to, to_double(value));
    case Type::bfloat16:
      return write(to, static_cast<uint16_t>(encode<BFloat16Format>(value)));
    case Type::float8e4m3:
      return write(to, static_cast<uint8_t>(encode<Float8E4M3Format>(value)));
    case Type::float8e5m2:
      return write(to, static_cast<uint8_t>(encode<Float8E5M2Format>(value)));
  }
}

}  // namespace hcomm
