// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace hcomm {

std::string_view name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid argument";
    case Code::invalid_usage: return "invalid usage";
    case Code::unavailable: return "unavailable";
    case Code::timeout: return "timeout";
    case Code::peer_failed: return "peer failed";
    case Code::aborted: return "aborted";
    case Code::unsupported: return "unsupported";
    case Code::system: return "system error";
    case Code::internal: return "internal error";
  }
  return "unknown";
}

void fail_errno(int error, std::string what) {
  throw Error(Code::system, what + ": " + std::generic_category().message(error));
}

void check_failed(const char* file, int line, const char* expression, std::string values) {
  std::fprintf(stderr, "hcomm: %s:%d: broken rule: %s %s\n", file, line, expression,
               values.c_str());
  std::abort();
}

}  // namespace hcomm
