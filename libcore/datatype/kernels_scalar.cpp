// SPDX-License-Identifier: Apache-2.0
// The kernels for any processor of the architecture: 16-byte vectors, no dispatch needed.
#include "datatype/body.h"

namespace hcomm {

constinit const KernelTable kScalarKernels = make_table("scalar");

}  // namespace hcomm
