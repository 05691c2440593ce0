// SPDX-License-Identifier: Apache-2.0
// The kernels for x86-64 with AVX-512 F, BW, DQ and VL; CMakeLists.txt gives this file its flags.
#if defined(__x86_64__)
#define HCOMM_LANES_AVX512
#include "datatype/body.h"

namespace hcomm {

constinit const KernelTable kAvx512Kernels = make_table("avx512");

}  // namespace hcomm
#endif
