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
  hcommStream_t stream = nullptr;
};
// Runs it once: without a stream to its end in the calling thread, else it is queued there.
hcommResult_t run(const Call& call, const Layout& layout, const Place& place);

}  // namespace hcomm::bench
