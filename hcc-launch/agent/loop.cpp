// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace hcomm::launch {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail_system(errno, "create an epoll descriptor");
}

bool Loop::watch(int fd, uint32_t events, Ready ready) {
  auto watch = std::make_shared<Watch>(Watch{fd, std::move(ready)});
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    if (errno == EPERM) return false;
    fail_system(errno, "watch descriptor {}", fd);
  }
  watches_[fd] = std::move(watch);
  return true;
}

void Loop::forget(int fd) {
  if (watches_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::after_ms(int64_t ms, std::function<void()> run) {
  const TimerId id = ++last_timer_;
  timers_.emplace(now_ns() + ms * 1'000'000, Timer{id, std::move(run)});
  return id;
}

void Loop::cancel(TimerId& timer) {
  if (timer != 0) std::erase_if(timers_, [&](const auto& each) { return each.second.id == timer; });
  timer = 0;
}

int Loop::wait_ms() const {
  if (timers_.empty()) return -1;
  const int64_t left_ns = timers_.begin()->first - now_ns();
  return static_cast<int>(std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, INT_MAX));
}

void Loop::run_timers() {
  const int64_t now = now_ns();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto run = std::move(timers_.begin()->second.run);
    timers_.erase(timers_.begin());
    run();
  }
}

void Loop::run_once() {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, std::size(events), wait_ms());
  if (count < 0 && errno != EINTR) fail_system(errno, "wait for events of the job");

  // What is ready now, held: an earlier callback may forget a later descriptor or reuse its number.
  std::vector<std::shared_ptr<Watch>> ready;
  for (int i = 0; i < count; i++)
    if (const auto found = watches_.find(events[i].data.fd); found != watches_.end())
      ready.push_back(found->second);
  for (const auto& watch : ready) {
    const auto found = watches_.find(watch->fd);
    if (found != watches_.end() && found->second == watch) watch->ready();
  }
  run_timers();
}

}  // namespace hcomm::launch
