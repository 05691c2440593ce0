// SPDX-License-Identifier: Apache-2.0
#include "transport/socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/error.h"

namespace hcomm::transport {

namespace {

UniqueFd make_socket(int family, size_t buffer_bytes) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd || buffer_bytes == 0) return fd;
  // Before connect or listen, since the window scale is agreed on then. The kernel caps the sizes
  // at net.core.{w,r}mem_max by itself.
  const int bytes = static_cast<int>(std::min<size_t>(buffer_bytes, 1U << 30));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  return fd;
}

struct PortRange {
  uint16_t low = 0, high = 0;
  uint32_t count() const { return uint32_t{high} - low + 1; }
};

PortRange parse_range(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto number = [&](std::string_view part) {
    uint16_t port = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), port);
    if (part.empty() || error != std::errc{} || end != part.data() + part.size() || port == 0)
      fail(Code::invalid_argument,
           "HCOMM_PORT_RANGE='{}': '{}' is no port; write LOW-HIGH, both 1 to 65535", text, part);
    return port;
  };
  PortRange range;
  range.low = number(text.substr(0, dash));
  range.high = dash == text.size() ? range.low : number(text.substr(dash + 1));
  if (range.low > range.high)
    fail(Code::invalid_argument, "HCOMM_PORT_RANGE='{}': the lower port comes first", text);
  return range;
}

// Returns an errno, 0 when fd listens.
int bind_and_listen(int fd, const SocketAddress& address) {
  if (address.family() == AF_INET6) {
    const int only_v6 = address.is_wildcard() ? 0 : 1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
  }
  if (address.port() != 0) {
    // A fixed port must not wait for old connections of a run before; two listeners still exclude
    // one another. A port that the kernel picks needs none of this.
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(fd, address.get(), address.bytes()) != 0) return errno;
  return ::listen(fd, SOMAXCONN) == 0 ? 0 : errno;
}

UniqueFd listen_at(const SocketAddress& address, size_t buffer_bytes, int& error) {
  UniqueFd fd = make_socket(address.family(), buffer_bytes);
  error = fd ? bind_and_listen(fd.get(), address) : errno;
  if (error != 0) fd.reset();
  return fd;
}

bool is_taken(int error) {
  return error == EADDRINUSE || error == EACCES;
}

// A socket that met itself: a connect to a free port of this host from that very port succeeds.
bool joined_to_itself(int fd) {
  return SocketAddress::of_local_end(fd) == SocketAddress::of_remote_end(fd);
}

}  // namespace

std::string socket_error_text(int error) {
  std::string text = std::generic_category().message(error);
  if (error == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    text +=
        fmt::format(": EMFILE, the limit of this process is {} descriptors; raise it (ulimit -n)",
                    limit.rlim_cur);
  }
  if (error == ENFILE) text += ": ENFILE, the limit of this host (sysctl fs.file-max)";
  return text;
}

UniqueFd listen_on(const SocketAddress& address, std::string_view range, size_t buffer_bytes) {
  int error = 0;
  if (address.port() != 0 || range.empty()) {
    UniqueFd fd = listen_at(address, buffer_bytes, error);
    if (fd) return fd;
    fail(Code::system, "listen on {}: {}{}", address.text(), socket_error_text(error),
         error == EADDRINUSE ? "; another process has this port: choose another or end it" : "");
  }
  const PortRange ports = parse_range(range);
  for (uint32_t port = ports.low; port <= ports.high; port++) {
    SocketAddress attempt = address;
    attempt.set_port(static_cast<uint16_t>(port));
    UniqueFd fd = listen_at(attempt, buffer_bytes, error);
    if (fd) return fd;
    if (!is_taken(error))
      fail(Code::system, "listen on {}: {}", attempt.text(), socket_error_text(error));
  }
  fail(Code::system,
       "listen on {} in HCOMM_PORT_RANGE={}: 1 port needed, 0 of {} available, all are taken ({}); "
       "each rank of a host needs one: widen the range",
       address.text(), range, ports.count(), socket_error_text(error));
}

uint16_t port_of(int fd) {
  return SocketAddress::of_local_end(fd).port();
}

UniqueFd accept_on(int listener) {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) return UniqueFd(fd);
    // Errors of one connection, which died in the queue, say nothing about the next one.
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
      case EPERM:
      case ENETDOWN:
      case ENETUNREACH:
      case EHOSTDOWN:
      case EHOSTUNREACH:
      case ETIMEDOUT:
        continue;
      default:
        return UniqueFd();
    }
  }
}

UniqueFd start_connect(const SocketAddress& address, size_t buffer_bytes) {
  UniqueFd fd = make_socket(address.family(), buffer_bytes);
  if (!fd) return fd;
  // An interrupted connect goes on by itself, as one in progress does.
  if (::connect(fd.get(), address.get(), address.bytes()) == 0 || errno == EINPROGRESS ||
      errno == EINTR)
    return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

int finish_connect(int fd) {
  pollfd waiting{fd, POLLOUT, 0};
  if (::poll(&waiting, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  if (error != 0) return error;
  return joined_to_itself(fd) ? ECONNREFUSED : 0;
}

}  // namespace hcomm::transport
