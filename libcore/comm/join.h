// SPDX-License-Identifier: Apache-2.0
// The ways into a communicator: by a unique id, by the job that started the process, or all ranks
// in this process. Each ends in a Membership that a Communicator is made of. Called by api.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/control/rendezvous.h"
#include "comm/runtime.h"

namespace hcomm::comm {

// A new id; this process serves it.
UniqueId new_id(Runtime& runtime);

// Joins the communicator of `ranks` that id names. Throws Error.
std::unique_ptr<Communicator> join_by_id(Runtime& runtime, const UniqueId& id, uint32_t rank,
                                         uint32_t ranks, const Config& config);

// Joins the job that started this process. Throws Error.
std::unique_ptr<Communicator> join_world(Runtime& runtime, const Config& config);

}  // namespace hcomm::comm
