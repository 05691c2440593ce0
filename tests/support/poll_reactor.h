// SPDX-License-Identifier: Apache-2.0
// A Reactor for tests of the lower layers: one thread around poll(). The library's own is in comm,
// which stands above what is tested with this one. Owned by a test's fixture.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/reactor.h"

namespace hcomm::test {

class PollReactor final : public Reactor {
 public:
  PollReactor() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }
  ~PollReactor() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    ring();
    thread_.join();
  }

  void watch(int fd, std::function<void()> ready) override {
    {
      const std::lock_guard lock(mutex_);
      watched_[fd] = std::make_shared<std::function<void()>>(std::move(ready));
    }
    ring();
  }

  void unwatch(int fd) override {
    std::unique_lock lock(mutex_);
    watched_.erase(fd);
    if (std::this_thread::get_id() == thread_.get_id()) return;
    idle_.wait(lock, [&] { return running_ != fd; });
  }

 private:
  void ring() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void run() {
    for (;;) {
      std::vector<pollfd> fds{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        for (const auto& [fd, ready] : watched_)
          fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
      if (::poll(fds.data(), fds.size(), -1) <= 0) continue;
      if (fds[0].revents != 0) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
      }
      for (size_t i = 1; i < fds.size(); i++)
        if (fds[i].revents != 0) call(fds[i].fd);
    }
  }

  void call(int fd) {
    std::shared_ptr<std::function<void()>> ready;  // lives on when it unwatches itself
    {
      const std::lock_guard lock(mutex_);
      const auto found = watched_.find(fd);
      if (found == watched_.end()) return;
      ready = found->second;
      running_ = fd;
    }
    (*ready)();
    const std::lock_guard lock(mutex_);
    running_ = -1;
    idle_.notify_all();
  }

  UniqueFd wake_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<int, std::shared_ptr<std::function<void()>>> watched_;
  int running_ = -1;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hcomm::test
