// SPDX-License-Identifier: Apache-2.0
// For its life this process may open `more` further descriptors, and no others.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"

namespace hcomm::test {

class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    // Numbers are given out from the lowest free one: fill the gaps, then limit what follows.
    const int top = fcntl(0, F_DUPFD_CLOEXEC, 0);
    for (int fd = top; fd >= 0 && fd < 64;) {
      fillers_.emplace_back(fd);
      fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
      if (fd >= 64) ::close(fd);
    }
    const rlimit limit{64 + more, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<UniqueFd> fillers_;
};

}  // namespace hcomm::test
