// SPDX-License-Identifier: Apache-2.0
// Host reduction kernels: one table of functions, the best that the processor has, chosen once
// (CPUID, or HCOMM_KERNELS). Pure: no allocation, no state; any alignment; nothing outside the
// count elements is read or written. `to` may equal any input; otherwise no overlap.
//
// Numbers (hcomm(7)): float16, bfloat16 and float8 are widened to float32, folded left to right
// over all inputs of one call, rounded once, to nearest even. Integers wrap. Whatever gives a NaN
// gives the canonical quiet one, min/max for a NaN in any input; -0 is below +0. The bits are the
// same in every instruction set. avg folds as sum: the division is `finish`'s. premul_sum folds as
// sum: the factor is `scale`'s.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "datatype/types.h"

namespace hcomm {

// Whether stores go past the caches: for outputs far beyond the last-level cache, never below.
enum class Store : unsigned char { cached, streaming };

// to[i] = inputs[0][i] op inputs[1][i] op ... (left fold), count elements, at least one input (then
// a copy). `op` must be allowed for `type`; avg and premul_sum fold as sum.
void reduce(Type type, Op op, void* to, std::span<const void* const> inputs, size_t count,
            Store store = Store::cached);
// The common case of two inputs, without a span.
void reduce2(Type type, Op op, void* to, const void* a, const void* b, size_t count,
             Store store = Store::cached);

// avg: to[i] = from[i] / ranks; integers round toward zero, floats in float32/float64, one
// rounding. ranks == 1 copies. to may equal from.
void finish_avg(Type type, void* to, const void* from, size_t count, unsigned ranks);

// premul_sum: to[i] = from[i] * *scalar (of type); integers wrap. to may equal from.
void scale(Type type, void* to, const void* from, const void* scalar, size_t count);

// Plain copy of bytes; regions must not overlap.
void copy_bytes(void* to, const void* from, size_t bytes, Store store = Store::cached);

// One value of any type to and from double, for tests and checks of benchmarks; conversions round
// to nearest even, overflow follows the format (float8e4m3 has no infinity: saturates to NaN as OCP
// defines it).
double load_value(Type type, const void* from);
void store_value(Type type, void* to, double value);

// "avx512", "avx2" or "scalar": what is in force. select_kernels refuses what the processor lacks.
std::string_view kernels_in_force();
void select_kernels(std::string_view name);  // "" = the best; throws unavailable, invalid_argument

}  // namespace hcomm
