// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_accept.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "transport/dial.h"

namespace hcomm::transport {

namespace {

constexpr size_t kMaxStrangers = 64;
constexpr int64_t kStrangerNs = 2'000'000'000;
// Without descriptors for this long, whoever waits for a connection is told.
constexpr int64_t kStarvedNs = 1'000'000'000;
constexpr long kTickNs = 100'000'000;
constexpr uint64_t kListener = 0, kTimer = 1, kFirstSerial = 2;

bool add(int epoll, int fd, uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

UniqueFd check_made(int fd, std::string_view what) {
  if (fd < 0) fail(Code::system, "tcp: make {}: {}", what, socket_error_text(errno));
  return UniqueFd(fd);
}

}  // namespace

TcpAcceptor::TcpAcceptor(UniqueFd listener, const Place& place)
    : place_(place),
      reactor_(*place.reactor),
      listener_(std::move(listener)),
      epoll_(check_made(epoll_create1(EPOLL_CLOEXEC), "an epoll set")),
      timer_(check_made(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "a timer")),
      doorbell_(check_made(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "an eventfd")),
      serial_(kFirstSerial) {
  if (!add(epoll_.get(), listener_.get(), kListener) || !add(epoll_.get(), timer_.get(), kTimer))
    fail(Code::system, "tcp: watch the listener: {}", socket_error_text(errno));
  reactor_.watch(epoll_.get(), [this] { ready(); });
}

TcpAcceptor::~TcpAcceptor() {
  reactor_.unwatch(epoll_.get());
}

UniqueFd TcpAcceptor::take(uint32_t from, uint32_t slot) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < arrived_.size(); i++)
    if (arrived_[i].from == from && arrived_[i].slot == slot) {
      UniqueFd fd = std::move(arrived_[i].fd);
      arrived_.erase(arrived_.begin() + static_cast<ptrdiff_t>(i));
      return fd;
    }
  return UniqueFd();
}

std::string TcpAcceptor::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

void TcpAcceptor::quiet() {
  uint64_t count = 0;
  (void)!::read(doorbell_.get(), &count, sizeof count);
}

void TcpAcceptor::ring() {
  arrivals_.fetch_add(1, std::memory_order_release);
  const uint64_t one = 1;
  (void)!::write(doorbell_.get(), &one, sizeof one);
}

void TcpAcceptor::ready() {
  epoll_event events[32];
  const int count = epoll_wait(epoll_.get(), events, 32, 0);
  for (int i = 0; i < count; i++) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kListener)
      accept_all();
    else if (tag == kTimer)
      tick();
    else
      advance(tag);
  }
  set_timer();
}

void TcpAcceptor::accept_all() {
  // Bounded, so that a flood of connections leaves time for those that are in already.
  for (size_t i = 0; i < kMaxStrangers && !paused_; i++) {
    UniqueFd fd = accept_on(listener_.get());
    if (fd)
      admit(std::move(fd));
    else if (again(errno))
      return;
    else
      pause(errno);
  }
}

void TcpAcceptor::admit(UniqueFd fd) {
  starved_since_ns_ = 0;
  if (strangers() >= kMaxStrangers) {
    // The oldest has had the most time to say who it is. If it was one of ours, it dials again.
    const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                     [](const Pending& p) { return !p.answered; });
    pending_.erase(oldest);
  }
  const uint64_t serial = serial_++;
  if (!add(epoll_.get(), fd.get(), serial)) return;
  pending_.push_back({serial, std::move(fd), now_ns()});
  advance(serial);
}

void TcpAcceptor::advance(uint64_t serial) {
  const auto at = std::find_if(pending_.begin(), pending_.end(),
                               [&](const Pending& p) { return p.serial == serial; });
  if (at == pending_.end()) return;  // dropped by an event before this one
  const Next next = step(*at);
  if (next == Next::wait) return;
  if (next == Next::arrive) arrive(*at);
  pending_.erase(at);
}

TcpAcceptor::Next TcpAcceptor::step(Pending& pending) {
  char* const hello = reinterpret_cast<char*>(&pending.hello);
  while (!pending.answered) {
    const ssize_t got = ::recv(pending.fd.get(), hello + pending.got,
                               sizeof pending.hello - pending.got, MSG_DONTWAIT);
    if (got < 0 && again(errno)) return Next::wait;
    if (got <= 0) return Next::drop;
    pending.got += static_cast<size_t>(got);
    const Next next = check(pending);
    if (next == Next::drop) return next;
  }
  char committed = 0;
  const ssize_t got = ::recv(pending.fd.get(), &committed, 1, MSG_DONTWAIT);
  if (got < 0 && again(errno)) return Next::wait;
  return got == 1 && committed == kCommitted ? Next::arrive : Next::drop;
}

// As soon as a byte is wrong the connection goes; a whole hello that fits is answered.
TcpAcceptor::Next TcpAcceptor::check(Pending& pending) {
  const Hello expected;
  const size_t known = std::min(pending.got, sizeof expected.magic);
  const Hello& hello = pending.hello;
  std::string_view wrong;
  if (hello.bytes().substr(0, known) != expected.bytes().substr(0, known))
    wrong = "no greeting of this library";
  else if (pending.got < sizeof hello)
    return Next::wait;
  else if (hello.version != expected.version)
    wrong = "another version of this library";
  else if (((hello.token[0] ^ place_.token[0]) | (hello.token[1] ^ place_.token[1])) != 0 ||
           hello.communicator != place_.communicator)
    wrong = "of another job or communicator";
  else if (hello.to != place_.rank || hello.from >= place_.rank || hello.slot >= kMaxSlots)
    wrong = "meant for another rank";
  if (wrong.empty() && ::send(pending.fd.get(), &kAccepted, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
    pending.answered = true;
    return Next::wait;
  }
  log(LogLevel::info, "dropped a connection from {}: {}",
      SocketAddress::of_remote_end(pending.fd.get()).text(), wrong.empty() ? "it broke" : wrong);
  return Next::drop;
}

void TcpAcceptor::arrive(Pending& pending) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pending.fd.get(), nullptr);
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back({pending.hello.from, pending.hello.slot, std::move(pending.fd)});
    error_.clear();
  }
  ring();
}

void TcpAcceptor::tick() {
  uint64_t count = 0;
  (void)!::read(timer_.get(), &count, sizeof count);
  const int64_t oldest_ns = now_ns() - kStrangerNs;
  std::erase_if(pending_, [&](const Pending& p) { return !p.answered && p.since_ns < oldest_ns; });
  if (paused_) paused_ = !add(epoll_.get(), listener_.get(), kListener);
}

// Nothing can be accepted for lack of descriptors or memory. The connection stays in the kernel's
// queue; the listener is left alone until the next tick, or the service thread would spin.
void TcpAcceptor::pause(int error) {
  const int64_t now = now_ns();
  if (starved_since_ns_ == 0) {
    starved_since_ns_ = now;
    log(LogLevel::warn, "tcp: accept a connection: {}; trying again", socket_error_text(error));
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  paused_ = true;
  if (now - starved_since_ns_ < kStarvedNs) return;
  {
    const std::lock_guard lock(mutex_);
    error_ = fmt::format("accept a connection: {}", socket_error_text(error));
  }
  ring();
}

// Ticks only while somebody needs it.
void TcpAcceptor::set_timer() {
  const bool wanted = paused_ || strangers() > 0;
  if (wanted == timed_) return;
  timed_ = wanted;
  itimerspec every{};
  if (wanted) every.it_value.tv_nsec = every.it_interval.tv_nsec = kTickNs;
  timerfd_settime(timer_.get(), 0, &every, nullptr);
}

// Connections that have not said who they are.
size_t TcpAcceptor::strangers() const {
  return static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(),
                                           [](const Pending& p) { return !p.answered; }));
}

}  // namespace hcomm::transport
