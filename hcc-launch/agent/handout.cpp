// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/handout.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "trace/record.h"

namespace hcomm::launch {

namespace {

// Shell scripts use the low numbers for themselves ("exec 3<file"): ours stand above them.
UniqueFd move_up(UniqueFd fd) {
  const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, 100);
  return high < 0 ? std::move(fd) : UniqueFd(high);
}

template <typename Address>
bool listen_on(int fd, const Address& address, uint32_t ranks) {
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         listen(fd, static_cast<int>(std::max(ranks * 2, 128u))) == 0;
}

template <typename Address>
uint16_t port_of(int fd, in_port_t Address::*port) {
  Address address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail_system(errno, "read the port of the job's root socket");
  return ntohs(address.*port);
}

}  // namespace

Handout::Handout(uint32_t ranks) : bytes_(trace::kAreaBytes * ranks) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd socket4(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket4 && listen_on(socket4.get(), v4, ranks)) {
    root_ = fmt::format("127.0.0.1:{}", port_of(socket4.get(), &sockaddr_in::sin_port));
    listener_ = move_up(std::move(socket4));
  } else {  // a machine without IPv4
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    UniqueFd socket6(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket6 || !listen_on(socket6.get(), v6, ranks))
      fail_system(errno, "listen on the loopback address for rank 0; is the interface lo up?");
    root_ = fmt::format("[::1]:{}", port_of(socket6.get(), &sockaddr_in6::sin6_port));
    listener_ = move_up(std::move(socket6));
  }

  recorder_ = move_up(UniqueFd(memfd_create("hcomm-recorder", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!recorder_ || ftruncate(recorder_.get(), static_cast<off_t>(bytes_)) != 0)
    fail_system(errno, "make {} bytes of memory for the recorder", bytes_);
  // A rank cannot take the memory away from under us.
  fcntl(recorder_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  memory_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, recorder_.get(), 0);
  if (memory_ == MAP_FAILED) fail_system(errno, "map {} bytes of the recorder", bytes_);
}

Handout::~Handout() {
  munmap(memory_, bytes_);
}

const void* Handout::area(uint32_t rank) const {
  return static_cast<const char*>(memory_) + trace::kAreaBytes * rank;
}

}  // namespace hcomm::launch
