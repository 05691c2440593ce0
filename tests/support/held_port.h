// SPDX-License-Identifier: Apache-2.0
// A TCP port of loopback that is ours from choice to use: bound, not listened at. Connections to it
// are refused, the kernel gives it to nobody else, and a listener that asks for it by number with
// SO_REUSEADDR, as the library's do, gets it all the same.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

namespace hcomm::test {

class HeldPort {
 public:
  // 0: any.
  explicit HeldPort(uint16_t wanted = 0) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(wanted);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), bytes) == 0 &&
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes) == 0)
      port_ = ntohs(at.sin_port);
  }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  ~HeldPort() { ::close(fd_); }

  uint16_t port() const { return port_; }  // 0: it was not free
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_;
  uint16_t port_ = 0;
};

// Two neighbours.
class HeldPair {
 public:
  HeldPair() {
    do {
      high_ = std::make_unique<HeldPort>();
      low_ = std::make_unique<HeldPort>(static_cast<uint16_t>(high_->port() - 1));
    } while (low_->port() == 0);
  }
  uint16_t low() const { return low_->port(); }
  std::string range() const {
    return std::to_string(low_->port()) + "-" + std::to_string(high_->port());
  }

 private:
  std::unique_ptr<HeldPort> low_, high_;
};

}  // namespace hcomm::test
