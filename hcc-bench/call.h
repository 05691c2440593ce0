// SPDX-License-Identifier: Apache-2.0
// How each operation is called: the only place that names the collectives of the C API.
#pragma once

#include <hcomm/hcomm.h>

#include "hcc-bench/operation.h"

namespace hcomm::bench {

struct Call {
  Operation operation;
  const void* send;
  void* recv;
  hcommDataType_t type;
  hcommRedOp_t redop;
  hcommComm_t comm;
};
// Runs it once, to its end, in the calling thread.
hcommResult_t run(const Call& call, const Layout& layout, const Place& place);

}  // namespace hcomm::bench
