// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/limits.h"

#include "base/error.h"

namespace hcomm::launch {

rlimit raise_open_files(uint64_t needed) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max != RLIM_INFINITY && before.rlim_max < needed)
    fail(Code::system,
         "the pipes and files of this job need {} descriptors, the limit is {} (ulimit -Hn); raise "
         "it or start fewer ranks",
         needed, before.rlim_max);
  rlimit raised = before;
  raised.rlim_cur = before.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

}  // namespace hcomm::launch
