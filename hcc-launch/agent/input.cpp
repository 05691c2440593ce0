// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/input.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hcomm::launch {

namespace {

constexpr size_t kBlockBytes = 64 << 10;
constexpr int64_t kBackgroundMs = 300;

// A read from the terminal by a background job would stop us (SIGTTIN).
bool may_read(int fd) {
  return isatty(fd) == 0 || tcgetpgrp(fd) == getpgrp();
}

}  // namespace

InputPump::InputPump(Loop& loop, int source, std::vector<UniqueFd> outlets)
    : loop_(loop), source_(source), block_(kBlockBytes) {
  outlets_.reserve(outlets.size());
  for (UniqueFd& fd : outlets) {
    fcntl(fd.get(), F_SETFL, O_NONBLOCK | O_WRONLY);
    outlets_.push_back({std::move(fd)});
  }
  wait_for_source();
}

void InputPump::close() {
  loop_.cancel(timer_);
  if (source_watched_) loop_.forget(source_);
  source_watched_ = false;
  for (Outlet& outlet : outlets_) drop(outlet);
}

void InputPump::drop(Outlet& outlet) {
  if (outlet.watched) loop_.forget(outlet.fd.get());
  outlet.watched = false;
  outlet.fd.reset();
}

// From the loop, also where the source is always ready: signals are to be served in between.
void InputPump::wait_for_source() {
  const auto read = [this] { read_block(); };
  if (!may_read(source_)) {
    timer_ = loop_.after_ms(kBackgroundMs, [this] { wait_for_source(); });
    return;
  }
  source_watched_ = loop_.watch(source_, EPOLLIN, [read] { read(); });
  if (!source_watched_) timer_ = loop_.after_ms(0, read);
}

void InputPump::read_block() {
  timer_ = 0;
  if (source_watched_) loop_.forget(source_);
  source_watched_ = false;
  if (!may_read(source_)) return wait_for_source();  // sent to the background meanwhile
  const ssize_t bytes = ::read(source_, block_.data(), block_.size());
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return wait_for_source();
  if (bytes <= 0) return close();  // the end, or an error: the ranks see an end
  bytes_ = static_cast<size_t>(bytes);
  for (Outlet& outlet : outlets_) outlet.written = 0;
  write_block();
}

void InputPump::write_block() {
  bool pending = false, open = false;
  for (Outlet& outlet : outlets_) {
    if (outlet.fd) write_to(outlet);
    open = open || outlet.fd;
    pending = pending || (outlet.fd && outlet.written < bytes_);
  }
  if (!open) return close();  // nobody reads any more: what is left stays in the source
  if (!pending) wait_for_source();
}

void InputPump::write_to(Outlet& outlet) {
  while (outlet.written < bytes_) {
    const ssize_t bytes =
        write(outlet.fd.get(), block_.data() + outlet.written, bytes_ - outlet.written);
    if (bytes >= 0) {
      outlet.written += static_cast<size_t>(bytes);
    } else if (errno == EAGAIN) {
      if (!outlet.watched)
        outlet.watched = loop_.watch(outlet.fd.get(), EPOLLOUT, [this] { write_block(); });
      return;
    } else if (errno != EINTR) {
      return drop(outlet);
    }
  }
  if (outlet.watched) loop_.forget(outlet.fd.get());
  outlet.watched = false;
}

}  // namespace hcomm::launch
