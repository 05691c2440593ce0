// SPDX-License-Identifier: Apache-2.0
#include "datatype/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.h"

namespace hcomm::reference {

namespace {

struct Layout {
  int exponent_bits, mantissa_bits;
  Bits nan;
  bool infinity;
};

Layout layout(Type type) {
  switch (type) {
    case Type::float16:
      return {5, 10, 0x7e00, true};
    case Type::bfloat16:
      return {8, 7, 0x7fc0, true};
    case Type::float8e4m3:
      return {4, 3, 0x7f, false};
    case Type::float8e5m2:
      return {5, 2, 0x7e, true};
    case Type::float32:
      return {8, 23, 0x7fc00000, true};
    case Type::float64:
      return {11, 52, 0x7ff8000000000000, true};
    default:
      throw std::logic_error("an integer has no layout");
  }
}

Bits sign_bit(Type type) {
  return Bits{1} << (size_of(type) * 8 - 1);
}

// The numbers of a narrow format from 0 up, by code; the first NaN ends it.
const std::vector<double>& numbers(Type type) {
  static std::vector<double> tables[kTypes];
  std::vector<double>& table = tables[static_cast<size_t>(type)];
  for (Bits code = table.size(); table.empty() || code < sign_bit(type); code++) {
    const double value = number(type, code);
    if (std::isnan(value)) break;
    table.push_back(value);
  }
  return table;
}

int64_t as_signed(Type type, Bits bits) {
  const int unused = 64 - static_cast<int>(size_of(type) * 8);
  return static_cast<int64_t>(bits << unused) >> unused;
}

Bits truncated(Type type, Bits bits) {
  return size_of(type) == 8 ? bits : bits & ((Bits{1} << size_of(type) * 8) - 1);
}

bool integer_less(Type type, Bits a, Bits b) {
  return is_signed(type) ? as_signed(type, a) < as_signed(type, b) : a < b;
}

Bits integer_op(Type type, Op op, Bits a, Bits b) {
  switch (op) {
    case Op::prod:
      return truncated(type, a * b);
    case Op::max:
      return integer_less(type, a, b) ? b : a;
    case Op::min:
      return integer_less(type, b, a) ? b : a;
    case Op::band:
      return a & b;
    case Op::bor:
      return a | b;
    case Op::bxor:
      return a ^ b;
    default:
      return truncated(type, a + b);
  }
}

Bits extreme(Type type, Op op, const std::vector<Bits>& inputs) {
  Bits best = inputs[0];
  for (const Bits bits : inputs) {
    if (is_nan(type, bits)) return canonical_nan(type);
    const double here = number(type, bits), there = number(type, best);
    const bool below = here < there || (here == there && std::signbit(here));
    const bool above = here > there || (here == there && !std::signbit(here));
    if (op == Op::max ? above : below) best = bits;
  }
  return best;
}

template <typename Computed>
Bits float_fold(Type type, Op op, const std::vector<Bits>& inputs) {
  auto result = static_cast<Computed>(number(type, inputs[0]));
  for (size_t i = 1; i < inputs.size(); i++) {
    const auto next = static_cast<Computed>(number(type, inputs[i]));
    result = op == Op::prod ? result * next : result + next;
  }
  return nearest(type, static_cast<double>(result));
}

}  // namespace

std::vector<Type> all_types() {
  std::vector<Type> types;
  for (int i = 0; i < kTypes; i++) types.push_back(static_cast<Type>(i));
  return types;
}

std::vector<Op> ops_of(Type type) {
  std::vector<Op> ops;
  for (int i = 0; i < kOps; i++)
    if (allowed(static_cast<Op>(i), type)) ops.push_back(static_cast<Op>(i));
  return ops;
}

std::vector<Type> narrow_floats() {
  return {Type::float16, Type::bfloat16, Type::float8e4m3, Type::float8e5m2};
}

std::vector<std::string> kernels_here() {
  std::vector<std::string> here;
  for (const char* name : {"scalar", "avx2", "avx512"}) {
    try {
      select_kernels(name);
      here.emplace_back(name);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
    }
  }
  select_kernels("");
  return here;
}

uint32_t codes(Type narrow) {
  return 1u << size_of(narrow) * 8;
}

double number(Type type, Bits bits) {
  if (type == Type::float32)
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == Type::float64) return std::bit_cast<double>(bits);
  const Layout form = layout(type);
  const double sign = (bits & sign_bit(type)) != 0 ? -1 : 1;
  const int bias = (1 << (form.exponent_bits - 1)) - 1;
  const int top = (1 << form.exponent_bits) - 1, ones = (1 << form.mantissa_bits) - 1;
  const int exponent = static_cast<int>(bits >> form.mantissa_bits) & top;
  const int mantissa = static_cast<int>(bits) & ones;
  if (form.infinity && exponent == top)
    return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  if (!form.infinity && exponent == top && mantissa == ones)
    return std::numeric_limits<double>::quiet_NaN();
  const double fraction = mantissa / std::pow(2.0, form.mantissa_bits);
  return exponent == 0 ? sign * fraction * std::pow(2.0, 1 - bias)
                       : sign * (1 + fraction) * std::pow(2.0, exponent - bias);
}

Bits nearest(Type type, double value) {
  if (std::isnan(value)) return canonical_nan(type);
  if (type == Type::float64) return std::bit_cast<Bits>(value);
  if (type == Type::float32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const std::vector<double>& table = numbers(type);
  const Bits sign = std::signbit(value) ? sign_bit(type) : 0;
  const double magnitude = std::fabs(value);
  const size_t finite = table.size() - (std::isinf(table.back()) ? 1 : 0);
  // As if there were one more number above the largest: what rounds to it overflows.
  const double beyond = 2 * table[finite - 1] - table[finite - 2];
  const auto at = [&](size_t code) { return code < finite ? table[code] : beyond; };
  if (magnitude >= beyond) return type == Type::float8e4m3 ? canonical_nan(type) : sign | finite;
  size_t code = static_cast<size_t>(
      std::upper_bound(table.begin(), table.begin() + static_cast<long>(finite), magnitude) -
      table.begin() - 1);
  const double middle = (at(code) + at(code + 1)) / 2;
  if (magnitude > middle || (magnitude == middle && code % 2 == 1)) code++;
  return code == finite && !layout(type).infinity ? canonical_nan(type) : sign | code;
}

bool is_nan(Type type, Bits bits) {
  return !is_integer(type) && std::isnan(number(type, bits));
}

Bits canonical_nan(Type type) {
  return layout(type).nan;
}

Bits fold(Type type, Op op, const std::vector<Bits>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  if (is_integer(type)) {
    Bits result = inputs[0];
    for (size_t i = 1; i < inputs.size(); i++) result = integer_op(type, op, result, inputs[i]);
    return result;
  }
  if (op == Op::max || op == Op::min) return extreme(type, op, inputs);
  return type == Type::float64 ? float_fold<double>(type, op, inputs)
                               : float_fold<float>(type, op, inputs);
}

Bits divided(Type type, Bits bits, unsigned ranks) {
  if (ranks == 1) return bits;
  if (is_integer(type)) {
    if (!is_signed(type)) return bits / ranks;
    return truncated(type, static_cast<Bits>(as_signed(type, bits) / int64_t{ranks}));
  }
  if (type == Type::float64) return nearest(type, number(type, bits) / ranks);
  const float quotient = static_cast<float>(number(type, bits)) / static_cast<float>(ranks);
  return nearest(type, static_cast<double>(quotient));
}

Bits scaled(Type type, Bits bits, Bits factor) {
  return fold(type, Op::prod, {bits, factor});
}

Bits get(Type type, const void* from, size_t index) {
  Bits bits = 0;
  std::memcpy(&bits, static_cast<const char*>(from) + index * size_of(type), size_of(type));
  return bits;
}

void set(Type type, void* to, size_t index, Bits bits) {
  std::memcpy(static_cast<char*>(to) + index * size_of(type), &bits, size_of(type));
}

std::vector<Bits> random_elements(Type type, size_t count, std::mt19937_64& random) {
  std::vector<Bits> special = {
      0, 1, 2, sign_bit(type) - 1, sign_bit(type), sign_bit(type) + 1, truncated(type, ~Bits{0})};
  if (!is_integer(type)) {
    const Bits nan = canonical_nan(type);
    for (const Bits magnitude : {nan, nan - 1, nan + 1, nearest(type, INFINITY),
                                 nearest(type, INFINITY) - 1, nearest(type, 1)})
      for (const Bits sign : {Bits{0}, sign_bit(type)})
        special.push_back(truncated(type, magnitude ^ sign));
  }
  std::vector<Bits> elements(count);
  for (Bits& element : elements)
    element = random() % 4 == 0 ? special[random() % special.size()] : truncated(type, random());
  // Numbers of like size, so that sums round and cancel.
  if (!is_integer(type))
    for (size_t i = 0; i < count; i += 2)
      elements[i] = nearest(type, std::ldexp(static_cast<double>(random() % 4096) - 2048, -7));
  return elements;
}

std::vector<char> packed(Type type, const std::vector<Bits>& elements) {
  std::vector<char> bytes(elements.size() * size_of(type));
  for (size_t i = 0; i < elements.size(); i++) set(type, bytes.data(), i, elements[i]);
  return bytes;
}

}  // namespace hcomm::reference
