// SPDX-License-Identifier: Apache-2.0
// The limit of open files, which a job of many ranks needs raised. Used by front before it opens
// anything; ranks begin with the limit as it was.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace hcomm::launch {

// To as many as allowed. Returns the limits as they were; throws when `needed` are not to be had.
rlimit raise_open_files(uint64_t needed);

}  // namespace hcomm::launch
