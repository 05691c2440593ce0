// SPDX-License-Identifier: Apache-2.0
// Element types and reduction operators, with their names and rules. Values equal the C API's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hcomm {

enum class Type : uint8_t {
  int8, uint8, int32, uint32, int64, uint64,
  float16, float32, float64, bfloat16, float8e4m3, float8e5m2,
};
inline constexpr int kTypes = 12;

enum class Op : uint8_t { sum, prod, max, min, avg, band, bor, bxor, premul_sum };
inline constexpr int kOps = 9;

size_t size_of(Type type);
std::string_view name(Type type);  // "float32"
std::string_view name(Op op);      // "sum"
std::optional<Type> type_named(std::string_view name);
std::optional<Op> op_named(std::string_view name);
bool is_integer(Type type);
bool is_signed(Type type);
// Bit operators are for integers only; everything else is for all types.
bool allowed(Op op, Type type);

}  // namespace hcomm
