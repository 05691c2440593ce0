// SPDX-License-Identifier: Apache-2.0
// The kernels for x86-64 with AVX2 and F16C; CMakeLists.txt gives this file its flags.
#if defined(__x86_64__)
#define HCOMM_LANES_AVX2
#include "datatype/body.h"

namespace hcomm {

constinit const KernelTable kAvx2Kernels = make_table("avx2");

}  // namespace hcomm
#endif
