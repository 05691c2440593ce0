// SPDX-License-Identifier: Apache-2.0
// A service thread for tests: the Reactor contract with nothing else in it. Owned by a test; tears
// down by joining its thread.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "base/reactor.h"

namespace hcomm::test {

class ReactorThread final : public Reactor {
 public:
  ReactorThread() : epoll_(epoll_create1(EPOLL_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC)) {
    add(stop_.get());
    thread_ = std::thread([this] { run(); });
  }
  ~ReactorThread() override {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  void watch(int fd, std::function<void()> ready) override {
    const std::lock_guard lock(mutex_);
    callbacks_[fd] = std::move(ready);
    add(fd);
  }
  void unwatch(int fd) override {
    const std::lock_guard lock(mutex_);  // recursive: a callback may unwatch
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    callbacks_.erase(fd);
  }

 private:
  void add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void run() {
    for (;;) {
      epoll_event event{};
      if (epoll_wait(epoll_.get(), &event, 1, -1) < 1) continue;
      if (event.data.fd == stop_.get()) return;
      const std::lock_guard lock(mutex_);
      const auto at = callbacks_.find(event.data.fd);
      if (at == callbacks_.end()) continue;
      const std::function<void()> call = at->second;
      call();
    }
  }

  UniqueFd epoll_, stop_;
  std::recursive_mutex mutex_;
  std::map<int, std::function<void()>> callbacks_;
  std::thread thread_;
};

}  // namespace hcomm::test
