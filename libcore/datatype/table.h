// SPDX-License-Identifier: Apache-2.0
// The table of kernels of one instruction set. Each kernels_<set>.cpp defines one, made of the same
// source (body.h) with its own compiler flags; kernels.cpp picks one. Absent: the choice.
#pragma once

#include <cstddef>

#include "datatype/kernels.h"

namespace hcomm {

using FoldTwo = void(void* to, const void* a, const void* b, size_t count, Store store);
using FoldMany = void(void* to, const void* const* inputs, size_t input_count, size_t count,
                      Store store);
using Divide = void(void* to, const void* from, size_t count, unsigned divisor);
using Scale = void(void* to, const void* from, const void* scalar, size_t count);
using Copy = void(void* to, const void* from, size_t bytes);

struct KernelTable {
  const char* name;
  FoldTwo* fold_two[kTypes][kOps];    // null where the operator is not allowed for the type
  FoldMany* fold_many[kTypes][kOps];  // likewise
  Divide* divide[kTypes];
  Scale* scale[kTypes];
  Copy* stream;  // copy_bytes past the caches
};

extern const KernelTable kScalarKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;    // needs AVX2 and F16C
extern const KernelTable kAvx512Kernels;  // needs AVX-512 F, BW, DQ, VL
#endif

}  // namespace hcomm
