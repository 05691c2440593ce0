// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <unistd.h>

#include <cerrno>

namespace hcomm {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace hcomm
