// SPDX-License-Identifier: Apache-2.0
// Addresses as values, names to addresses, and the interfaces of this host.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "transport/socket.h"

namespace hcomm::transport {

namespace {

const sockaddr_in& as_v4(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in*>(address);
}
const sockaddr_in6& as_v6(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in6*>(address);
}

SocketAddress make_v4(uint32_t host_order, uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(host_order);
  return {reinterpret_cast<const sockaddr*>(&v4), sizeof v4};
}

using NameFn = int (*)(int, sockaddr*, socklen_t*);

SocketAddress end_of(int fd, NameFn name_of) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (name_of(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), bytes};
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t bytes) {
  if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6) &&
      IN6_IS_ADDR_V4MAPPED(&as_v6(address).sin6_addr)) {
    // What a listener of both families accepted: the same peer as its plain IPv4 form.
    uint32_t v4 = 0;
    std::memcpy(&v4, as_v6(address).sin6_addr.s6_addr + 12, 4);
    *this = make_v4(ntohl(v4), ntohs(as_v6(address).sin6_port));
    return;
  }
  const bool known = (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) ||
                     (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6));
  if (!known) return;
  bytes_ = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&storage_, address, bytes_);
}

SocketAddress SocketAddress::loopback(uint16_t port) {
  return make_v4(INADDR_LOOPBACK, port);
}
SocketAddress SocketAddress::of_local_end(int fd) {
  return end_of(fd, getsockname);
}
SocketAddress SocketAddress::of_remote_end(int fd) {
  return end_of(fd, getpeername);
}

SocketAddress SocketAddress::wildcard(uint16_t port) {
  const UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe && errno == EAFNOSUPPORT) return make_v4(INADDR_ANY, port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  return {reinterpret_cast<const sockaddr*>(&v6), sizeof v6};
}

SocketAddress SocketAddress::numeric(std::string_view text, uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  const std::string host(text);
  if (host.empty() || getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  SocketAddress address(found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  address.set_port(port);
  return address;
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(as_v4(get()).sin_port);
  return family() == AF_INET6 ? ntohs(as_v6(get()).sin6_port) : uint16_t{0};
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(as_v4(get()).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_v6(get()).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET) return ntohl(as_v4(get()).sin_addr.s_addr) >> 16 == 0xa9fe;
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6(get()).sin6_addr);
}

bool SocketAddress::is_wildcard() const {
  if (family() == AF_INET) return as_v4(get()).sin_addr.s_addr == INADDR_ANY;
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&as_v6(get()).sin6_addr);
}

std::string SocketAddress::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &as_v4(get()).sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, port());
  }
  if (family() != AF_INET6) return "(no address)";
  inet_ntop(AF_INET6, &as_v6(get()).sin6_addr, host, sizeof host);
  std::string scope;
  if (const uint32_t id = as_v6(get()).sin6_scope_id; id != 0) {
    char name[IF_NAMESIZE] = "";
    scope = if_indextoname(id, name) ? fmt::format("%{}", name) : fmt::format("%{}", id);
  }
  return fmt::format("[{}{}]:{}", host, scope, port());
}

// byte 0: 4 or 6; 2..3 port, 4..7 scope id, 8..23 address, network order; the rest is zero.
void SocketAddress::pack(unsigned char* to) const {
  std::memset(to, 0, kPacked);
  if (family() != AF_INET && family() != AF_INET6) return;
  const uint16_t port_net = htons(port());
  std::memcpy(to + 2, &port_net, 2);
  if (family() == AF_INET) {
    to[0] = 4;
    std::memcpy(to + 8, &as_v4(get()).sin_addr, 4);
    return;
  }
  to[0] = 6;
  const uint32_t scope = htonl(as_v6(get()).sin6_scope_id);
  std::memcpy(to + 4, &scope, 4);
  std::memcpy(to + 8, &as_v6(get()).sin6_addr, 16);
}

SocketAddress SocketAddress::unpack(const unsigned char* from) {
  if (from[0] == 4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_port, from + 2, 2);
    std::memcpy(&v4.sin_addr, from + 8, 4);
    return {reinterpret_cast<const sockaddr*>(&v4), sizeof v4};
  }
  if (from[0] != 6) return {};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  uint32_t scope = 0;
  std::memcpy(&v6.sin6_port, from + 2, 2);
  std::memcpy(&scope, from + 4, 4);
  std::memcpy(&v6.sin6_addr, from + 8, 16);
  v6.sin6_scope_id = ntohl(scope);
  return {reinterpret_cast<const sockaddr*>(&v6), sizeof v6};
}

namespace {

struct HostPort {
  std::string host;
  uint16_t port;
};

[[noreturn]] void bad_address(std::string_view text, std::string_view why) {
  fail(Code::invalid_argument, "address '{}': {}; write HOST:PORT, IPV4:PORT or [IPV6]:PORT", text,
       why);
}

uint16_t parse_port(std::string_view text, std::string_view whole) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    bad_address(whole, fmt::format("'{}' is no port", text));
  return port;
}

HostPort split(std::string_view text, uint16_t default_port) {
  if (text.find('\0') != text.npos)
    bad_address(text.substr(0, text.find('\0')), "holds a zero byte");
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == text.npos || close == 1) bad_address(text, "no address in the brackets");
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':') bad_address(text, "no ':' after the brackets");
    return {std::string(text.substr(1, close - 1)),
            rest.empty() ? default_port : parse_port(rest.substr(1), text)};
  }
  const size_t colon = text.find(':');
  // Two colons without brackets: an IPv6 address without a port.
  const bool has_port = colon != text.npos && text.find(':', colon + 1) == text.npos;
  const std::string_view host = has_port ? text.substr(0, colon) : text;
  if (host.empty()) bad_address(text, "no host");
  return {std::string(host), has_port ? parse_port(text.substr(colon + 1), text) : default_port};
}

int look_up(const std::string& host, addrinfo** found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  // AI_ADDRCONFIG stays off: it would hide ::1 or 127.0.0.1 on hosts without an outer address.
  for (;;) {
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, found);
    if (error != EAI_SYSTEM || errno != EINTR) return error;
  }
}

}  // namespace

std::vector<SocketAddress> resolve(std::string_view text, uint16_t default_port) {
  const HostPort target = split(text, default_port);
  // Known without being asked for (RFC 6761): a minimal system has no /etc/hosts.
  if (target.host == "localhost")
    return {SocketAddress::loopback(target.port), SocketAddress::numeric("::1", target.port)};
  addrinfo* found = nullptr;
  if (const int error = look_up(target.host, &found); error != 0) {
    const int saved = errno;
    fail(Code::unavailable,
         "address '{}': cannot resolve '{}': {}; use a name that this host knows "
         "(getent ahosts {}) or a numeric address",
         text, target.host, error == EAI_SYSTEM ? socket_error_text(saved) : gai_strerror(error),
         target.host);
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SocketAddress address(at->ai_addr, at->ai_addrlen);
    address.set_port(target.port);
    if (address.family() != 0 &&
        std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  }
  freeaddrinfo(found);
  if (addresses.empty())
    fail(Code::unavailable, "address '{}': '{}' has no IPv4 or IPv6 address", text, target.host);
  return addresses;
}

bool names_loopback(std::string_view text) {
  const HostPort target = split(text, 0);
  return target.host == "localhost" || SocketAddress::numeric(target.host, 0).is_loopback();
}

namespace {

bool is_bridge_name(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {"docker", "virbr", "veth", "cni",
                                                   "lxc",    "lxdbr", "br-",  "podman"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// HCOMM_SOCKET_IFNAME, taken apart.
struct InterfaceFilter {
  bool excludes = false;
  std::vector<std::string_view> patterns;

  explicit InterfaceFilter(std::string_view text) {
    if (text.starts_with('^')) {
      excludes = true;
      text.remove_prefix(1);
    }
    patterns = split_list(text);
  }

  // The first pattern that fits, patterns.size() when none does.
  size_t match(std::string_view name) const {
    const auto fits = [&](std::string_view pattern) {
      return pattern.starts_with('=') ? name == pattern.substr(1) : name.starts_with(pattern);
    };
    return static_cast<size_t>(std::find_if(patterns.begin(), patterns.end(), fits) -
                               patterns.begin());
  }
  bool selects() const { return !excludes && !patterns.empty(); }
};

struct Candidate {
  size_t pattern;  // that asked for it by name: the order in which the user wrote them
  int kind;        // 0 ordinary, 1 bridge, 2 link-local, 3 no carrier, 4 loopback
  SocketAddress address;
};

int kind_of(const Interface& interface) {
  if (interface.loopback || interface.address.is_loopback()) return 4;
  if (!interface.carrier) return 3;
  if (interface.address.is_link_local()) return 2;
  return interface.bridge ? 1 : 0;
}

std::string list_text(std::span<const Interface> from) {
  std::string text;
  for (const Interface& interface : from)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", interface.name,
                        interface.address.text(), interface.up ? "" : " (down)");
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  while (getifaddrs(&list) != 0)
    if (errno != EINTR)
      fail(Code::system, "list the network interfaces: {}", socket_error_text(errno));
  std::vector<Interface> result;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    // A link that has just come up may be told so a second later: it is a last resort till then.
    result.push_back({at->ifa_name, SocketAddress(at->ifa_addr, bytes),
                      (at->ifa_flags & IFF_UP) != 0, (at->ifa_flags & IFF_LOOPBACK) != 0,
                      is_bridge_name(at->ifa_name), (at->ifa_flags & IFF_RUNNING) != 0});
  }
  freeifaddrs(list);
  return result;
}

std::vector<SocketAddress> usable_addresses(const Config& config, std::span<const Interface> from) {
  const InterfaceFilter filter(config.interfaces);
  std::vector<Candidate> candidates;
  for (const Interface& interface : from) {
    const int family = interface.address.family();
    if (!interface.up || (config.family == "ipv4" && family != AF_INET) ||
        (config.family == "ipv6" && family != AF_INET6))
      continue;
    const size_t pattern = filter.match(interface.name);
    const bool matched = pattern < filter.patterns.size();
    if (filter.excludes ? matched : filter.selects() && !matched) continue;
    int kind = kind_of(interface);
    // Asked for by name: as good as any other, whatever it looks like.
    if (filter.selects() && kind != 2) kind = 0;
    candidates.push_back({filter.selects() ? pattern : 0, kind, interface.address});
  }
  if (candidates.empty())
    fail(Code::invalid_argument,
         "no network interface fits HCOMM_SOCKET_IFNAME='{}' HCOMM_SOCKET_FAMILY='{}'; there are: "
         "{}; change or unset these settings",
         config.interfaces, config.family, list_text(from));
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.pattern != b.pattern ? a.pattern < b.pattern : a.kind < b.kind;
  });
  std::vector<SocketAddress> addresses;
  for (const Candidate& candidate : candidates) addresses.push_back(candidate.address);
  return addresses;
}

}  // namespace hcomm::transport
