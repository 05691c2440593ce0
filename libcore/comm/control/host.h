// SPDX-License-Identifier: Apache-2.0
// Which host this is: a key for the question whether two processes may share memory. Its name, for
// people, is in base/process.h: two hosts may have one name. Absent: topology.
#pragma once

#include <string>

#include "base/config.h"

namespace hcomm::comm {

// Processes with equal keys run under one kernel since one boot, in one network namespace, as one
// user, so that they may share memory; whether they can is proved by doing it. HCOMM_HOST_ID says
// otherwise. The name of the host is no part of it.
std::string host_key(const Config& config);
// One kernel since one boot; where /proc is hidden, the time of the boot does nearly as well.
std::string boot_id();

}  // namespace hcomm::comm
