// SPDX-License-Identifier: Apache-2.0
// Checks of arguments, as pure functions from a call to "" or a text that says which argument is
// wrong, what was seen and what is allowed. Private to api/.
#pragma once

#include <cstdint>
#include <string>

#include "comm/call.h"
#include "hcomm/hcomm.h"

namespace hcomm::api {

// What a call is, before it is known to be right.
struct Arguments {
  comm::Call call;
  int64_t root = 0;  // or the peer
  int type = 0, op = 0;
  bool operator==(const Arguments&) const = default;
};

// Checks all of it; fills call.in_place, call.root, call.type, call.op.
std::string check(Arguments& arguments, hcommComm_t comm);

}  // namespace hcomm::api
