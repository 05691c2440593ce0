// SPDX-License-Identifier: Apache-2.0
// Connections for tests of sockets: one that just stands, bytes over it, a dial driven to its end,
// and the other side of a dial.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "transport/dial.h"
#include "transport/socket.h"

namespace hcomm::test {

inline constexpr int64_t kConnectMs = 20'000;

// Empty, with errno set, where it is refused.
inline UniqueFd connect_to(const transport::SocketAddress& address) {
  UniqueFd fd = transport::start_connect(address);
  pollfd waiting{fd.get(), POLLOUT, 0};
  const Deadline deadline = Deadline::after_ms(kConnectMs);
  while (fd && ::poll(&waiting, 1, 100) != 1 && !deadline.passed()) {
  }
  if (const int error = fd ? transport::finish_connect(fd.get()) : errno; error != 0) {
    fd.reset();
    errno = error;
  }
  return fd;
}

inline void say(int fd, std::string_view bytes) {
  const Deadline deadline = Deadline::after_ms(kConnectMs);
  while (!bytes.empty() && !deadline.passed()) {
    const ssize_t moved = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved > 0) bytes.remove_prefix(static_cast<size_t>(moved));
    pollfd waiting{fd, POLLOUT, 0};
    if (moved < 0) ::poll(&waiting, 1, 100);
  }
  EXPECT_TRUE(bytes.empty());
}

// Less than `bytes` where the connection ends before.
inline std::string hear(int fd, size_t bytes) {
  std::string data(bytes, '\0');
  size_t at = 0;
  const Deadline deadline = Deadline::after_ms(kConnectMs);
  while (at < bytes && !deadline.passed()) {
    const ssize_t moved = ::recv(fd, data.data() + at, bytes - at, MSG_DONTWAIT);
    if (moved == 0 || (moved < 0 && !again(errno) && errno != EINTR)) break;
    if (moved > 0) at += static_cast<size_t>(moved);
    pollfd waiting{fd, POLLIN, 0};
    if (moved < 0) ::poll(&waiting, 1, 100);
  }
  data.resize(at);
  return data;
}

inline UniqueFd drive(transport::Dial& dial, Deadline deadline = Deadline::after_ms(kConnectMs)) {
  while (!dial.advance() && dial.hopeless() == 0 && !deadline.passed()) {
    std::vector<pollfd> waiting;
    dial.interests(waiting);
    ::poll(waiting.data(), waiting.size(),
           static_cast<int>(std::min(dial.wait_ms(), deadline.left_ms())));
  }
  return dial.take();
}

inline UniqueFd await_accept(int listener) {
  pollfd waiting{listener, POLLIN, 0};
  const Deadline deadline = Deadline::after_ms(kConnectMs);
  while (!deadline.passed()) {
    ::poll(&waiting, 1, 20);
    if (UniqueFd fd = transport::accept_on(listener)) return fd;
  }
  return UniqueFd();
}

// Accepts until one greets and commits, as the other side of a dial does.
inline UniqueFd serve(int listener, std::string_view greeting) {
  const Deadline deadline = Deadline::after_ms(kConnectMs);
  while (!deadline.passed()) {
    UniqueFd fd = await_accept(listener);
    if (!fd || hear(fd.get(), greeting.size()) != greeting) continue;  // it was given up
    say(fd.get(), {&transport::kAccepted, 1});
    if (hear(fd.get(), 1) == std::string(1, transport::kCommitted)) return fd;
  }
  return UniqueFd();
}

}  // namespace hcomm::test
