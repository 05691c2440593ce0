// SPDX-License-Identifier: Apache-2.0
#include "datatype/types.h"

#include <iterator>

namespace hcomm {

namespace {

constexpr struct {
  std::string_view name;
  size_t bytes;
  bool integer, has_sign;
} kTypeTable[kTypes] = {
    {"int8", 1, true, true},      {"uint8", 1, true, false},     {"int32", 4, true, true},
    {"uint32", 4, true, false},   {"int64", 8, true, true},      {"uint64", 8, true, false},
    {"float16", 2, false, true},  {"float32", 4, false, true},   {"float64", 8, false, true},
    {"bfloat16", 2, false, true}, {"float8e4m3", 1, false, true}, {"float8e5m2", 1, false, true},
};
constexpr std::string_view kOpNames[kOps] = {"sum",  "prod", "max",  "min",       "avg",
                                             "band", "bor",  "bxor", "premul_sum"};

}  // namespace

size_t size_of(Type type) { return kTypeTable[static_cast<size_t>(type)].bytes; }
std::string_view name(Type type) { return kTypeTable[static_cast<size_t>(type)].name; }
std::string_view name(Op op) { return kOpNames[static_cast<size_t>(op)]; }
bool is_integer(Type type) { return kTypeTable[static_cast<size_t>(type)].integer; }
bool is_signed(Type type) { return kTypeTable[static_cast<size_t>(type)].has_sign; }

std::optional<Type> type_named(std::string_view name) {
  for (size_t i = 0; i < kTypes; i++)
    if (kTypeTable[i].name == name) return static_cast<Type>(i);
  return std::nullopt;
}

std::optional<Op> op_named(std::string_view name) {
  for (size_t i = 0; i < kOps; i++)
    if (kOpNames[i] == name) return static_cast<Op>(i);
  return std::nullopt;
}

bool allowed(Op op, Type type) {
  const bool bits = op == Op::band || op == Op::bor || op == Op::bxor;
  return !bits || is_integer(type);
}

}  // namespace hcomm
