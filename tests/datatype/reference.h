// SPDX-License-Identifier: Apache-2.0
// What the kernels must give, worked out one element at a time and independently of them: narrow
// formats through a table of their numbers, integers through 64-bit arithmetic. Used by the tests
// of this folder. Absent: speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "datatype/kernels.h"

namespace hcomm::reference {

// Elements are their bits, in the low bytes.
using Bits = uint64_t;

std::vector<Type> all_types();
std::vector<Op> ops_of(Type type);
std::vector<Type> narrow_floats();
std::vector<std::string> kernels_here();  // the instruction sets that run on this machine

uint32_t codes(Type narrow);            // 256 or 65536
double number(Type type, Bits bits);    // of a float
Bits nearest(Type type, double value);  // to nearest even, of a float
bool is_nan(Type type, Bits bits);
Bits canonical_nan(Type type);

Bits fold(Type type, Op op, const std::vector<Bits>& inputs);
Bits divided(Type type, Bits bits, unsigned ranks);
Bits scaled(Type type, Bits bits, Bits factor);

Bits get(Type type, const void* from, size_t index);
void set(Type type, void* to, size_t index, Bits bits);

// Elements of random bits, every fourth one of the values where rules differ: zeros, infinities,
// NaNs, subnormals, bounds.
std::vector<Bits> random_elements(Type type, size_t count, std::mt19937_64& random);
std::vector<char> packed(Type type, const std::vector<Bits>& elements);

}  // namespace hcomm::reference
