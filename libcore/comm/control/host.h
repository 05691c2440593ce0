// SPDX-License-Identifier: Apache-2.0
// Who this host is: a name for people and a key for the question whether two processes may share
// memory. Absent: topology.
#pragma once

#include <string>

#include "base/config.h"

namespace hcomm::comm {

// For messages only: two hosts may have one name.
std::string host_name();

// Processes with equal keys run under one kernel since one boot, in one network namespace, as one
// user, so that they may share memory; whether they can is proved by doing it. HCOMM_HOST_ID says
// otherwise. The name of the host is no part of it.
std::string host_key(const Config& config);

}  // namespace hcomm::comm
