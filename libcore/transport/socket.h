// SPDX-License-Identifier: Apache-2.0
// TCP sockets as the transports and the control connections need them: addresses of both families,
// the interfaces of this host in order of preference, listening in a range of ports, connecting
// without blocking. All descriptors are non-blocking and close-on-exec; EINTR never shows.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/fd.h"

namespace hcomm::transport {

// An IPv4 or IPv6 address with a port. Value.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t bytes);
  static SocketAddress loopback(uint16_t port);
  static SocketAddress of_local_end(int fd);  // family 0 when fd has none
  static SocketAddress of_remote_end(int fd);
  // Every address of this host, of both families where IPv6 is there.
  static SocketAddress wildcard(uint16_t port);
  // "10.0.0.2", "fe80::1%eth0", no name; family 0 when it is none.
  static SocketAddress numeric(std::string_view text, uint16_t port);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t bytes() const { return bytes_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_wildcard() const;
  std::string text() const;  // "10.0.0.2:4711", "[fe80::1%eth0]:4711"
  bool operator==(const SocketAddress& other) const { return text() == other.text(); }

  // Fixed 32-byte form for the wire (family, port, scope id, address).
  static constexpr size_t kPacked = 32;
  void pack(unsigned char* to) const;
  static SocketAddress unpack(const unsigned char* from);  // family 0 when malformed

 private:
  sockaddr_storage storage_{};
  socklen_t bytes_ = 0;
};

// "host:port", "[v6]:port", "v4:port", "host": every address that the name has, both families, in
// the resolver's order; localhost is 127.0.0.1 and ::1 without it. A name takes as long as the
// resolver does (resolv.conf(5): some seconds a name server). Throws Error(invalid_argument |
// unavailable) that quotes the text.
std::vector<SocketAddress> resolve(std::string_view text, uint16_t default_port);

// The host in "host:port" is localhost or a loopback address, by its text alone.
bool names_loopback(std::string_view text);

struct Interface {
  std::string name;
  SocketAddress address;
  bool up = false, loopback = false;
  bool bridge = false;  // docker0, virbr*, veth*, cni*, lxc*: rarely a way to another host
  bool carrier = true;  // false: no cable, or the kernel has not said so yet
};
// All IPv4 and IPv6 addresses of this host.
std::vector<Interface> interfaces();

// The addresses to offer to peers, best first, by HCOMM_SOCKET_IFNAME (comma list of prefixes;
// "=NAME" exact; a leading "^" excludes the list) and HCOMM_SOCKET_FAMILY: ordinary ones, then
// bridges, then link-local, then those without a carrier, loopback last unless asked for by name.
// An exclusion never promotes loopback. Throws Error(invalid_argument) naming the filter and what
// there is when nothing is left.
std::vector<SocketAddress> usable_addresses(const Config& config, std::span<const Interface> from);

// Listens on address (port 0: one of `range` "LOW-HIGH", or any when it is empty). The message of a
// failure tells address, port or range, the number tried, and the errno (EMFILE names the limit).
// buffer_bytes: kernel buffers of the sockets accepted from it, 0: the system's choice.
UniqueFd listen_on(const SocketAddress& address, std::string_view range, size_t buffer_bytes = 0);
// The next connection, empty with errno set when there is none now (EAGAIN) or at all.
UniqueFd accept_on(int listener);
// The port a listener has.
uint16_t port_of(int fd);

// "Too many open files: the limit of this process is 24 (ulimit -n)": EMFILE and ENFILE tell the
// limit, other errnos only their text.
std::string socket_error_text(int error);

// A socket whose connect has begun: writable when done; finish_connect tells the errno (0 = joined,
// EINPROGRESS = not yet). Empty, with errno set, when it failed at once.
UniqueFd start_connect(const SocketAddress& address, size_t buffer_bytes = 0);
int finish_connect(int fd);

}  // namespace hcomm::transport
