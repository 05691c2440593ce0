// SPDX-License-Identifier: Apache-2.0
// TCP over loopback between two processes: half a round trip, and bandwidth one way and both ways,
// with the congestion control that this host gives to everybody and with the one that the library
// takes within a host.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "hcc-bench/limits/crew.h"

namespace hcomm::bench::limits {

namespace {

constexpr int kSocketBuffer = 4 * 1024 * 1024;
constexpr size_t kChunk = 256 * kKiB, kStream = 16 * kMiB, kWord = 4;

struct Sockets {
  UniqueFd ends[2];
  std::string control;  // "bbr"
};

bool set(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

bool set_control(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

std::string control_of(int fd) {
  char name[16] = {};
  socklen_t bytes = sizeof name - 1;
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &bytes) == 0 ? name : "unknown";
}

UniqueFd make_socket() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail_system(errno, "make a socket");
  set(fd.get(), SOL_SOCKET, SO_SNDBUF, kSocketBuffer);
  set(fd.get(), SOL_SOCKET, SO_RCVBUF, kSocketBuffer);
  return fd;
}

// `control` "": the host's.
Sockets connect_pair(const std::string& control) {
  Sockets sockets;
  const UniqueFd listener = make_socket();
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (bind(listener.get(), address, bytes) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), address, &bytes) != 0)
    fail_system(errno, "listen on loopback");
  sockets.ends[0] = make_socket();
  if (connect(sockets.ends[0].get(), address, bytes) != 0)
    fail_system(errno, "connect over loopback");
  sockets.ends[1].reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!sockets.ends[1]) fail_system(errno, "accept over loopback");
  for (const UniqueFd& end : sockets.ends) {
    set(end.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    if (!control.empty() && !set_control(end.get(), control))
      fail(Code::unavailable, "congestion control {} is not allowed", control);
  }
  sockets.control = control_of(sockets.ends[0].get());
  return sockets;
}

enum class Block : uint8_t { yes, no };

// Both directions of one end, moved in turn until all bytes have passed.
class Stream {
 public:
  Stream(int fd, Block block) : fd_(fd), out_(kChunk, Sharing::own), in_(kChunk, Sharing::own) {
    out_.fill(1);
    in_.fill(0);
    if (block == Block::no) fcntl(fd, F_SETFL, O_NONBLOCK);
  }

  void pass(size_t to_send, size_t to_receive) {
    while (to_send > 0 || to_receive > 0) {
      if (to_send > 0)
        to_send -= moved(write(fd_, out_.as<char>(), std::min(kChunk, to_send)), "write to");
      if (to_receive > 0)
        to_receive -= moved(read(fd_, in_.as<char>(), std::min(kChunk, to_receive)), "read from");
    }
  }

 private:
  static size_t moved(ssize_t bytes, const char* what) {
    if (bytes > 0) return static_cast<size_t>(bytes);
    if (bytes < 0 && again(errno)) return 0;
    if (bytes == 0) errno = ECONNRESET;
    fail_system(errno, "{} a socket of loopback", what);
  }

  int fd_;
  Mapping out_, in_;
};

void half_round_trip(Member& member, Stream& stream) {
  member.time(
      [&] {
        if (member.rank() == 0) stream.pass(kWord, 0);
        stream.pass(0, kWord);
        if (member.rank() == 1) stream.pass(kWord, 0);
      },
      2);
}

void one_way(Member& member, Stream& stream) {
  member.time(
      [&] { stream.pass(member.rank() == 0 ? kStream : 0, member.rank() == 1 ? kStream : 0); });
}

void both_ways(Member& member, Stream& stream) {
  member.time([&] { stream.pass(kStream, kStream); });
}

struct Test {
  const char* name;
  void (*run)(Member&, Stream&);
  size_t bytes;
  Block block;
  const char *how, *bounds;
};
constexpr Test kTests[] = {
    {"tcp_half_round_trip", half_round_trip, kWord, Block::no, "spinning",
     "a message of a few bytes over TCP"},
    {"tcp_half_round_trip_asleep", half_round_trip, kWord, Block::yes, "blocking",
     "the same to a rank that sleeps"},
    {"tcp_one_way", one_way, kStream, Block::no, "", "broadcast, reduce, a message over TCP"},
    {"tcp_both_ways", both_ways, kStream, Block::no, "",
     "busbw of all-reduce and its like over TCP, 2 ranks"},
};

// What the library would take, "" where that is the host's own.
std::string control_of_library(const std::string& of_host) {
  for (const char* name : {"reno", "cubic"}) {
    if (of_host == name) return "";
    const UniqueFd fd = make_socket();
    if (set_control(fd.get(), name)) return name;
  }
  return "";
}

void add_test(const Request& request, const Test& test, const std::string& control) {
  Sockets sockets;
  Limit limit{.section = "tcp",
              .name = test.name,
              .bytes = test.bytes,
              .processes = 2,
              .bounds = test.bounds};
  const auto measure = [&] {
    return run_pair(request, [&](Member& member) {
      Stream stream(sockets.ends[member.rank()].get(), test.block);
      member.barrier();
      test.run(member, stream);
    });
  };
  try {
    sockets = connect_pair(control);
  } catch (const Error& error) {
    limit.absent = error.text();
    request.add(limit);
    return;
  }
  limit.how = sockets.control + (control.empty() ? ", of this host" : "");
  if (test.how[0] != 0) limit.how += fmt::format(", {}", test.how);
  add_of_pair(request, limit, measure);
}

}  // namespace

void measure_tcp(const Request& request) {
  const std::string of_host = control_of(make_socket().get());
  const std::string other = control_of_library(of_host);
  for (const Test& test : kTests) {
    add_test(request, test, "");
    if (!other.empty()) add_test(request, test, other);
  }
}

}  // namespace hcomm::bench::limits
