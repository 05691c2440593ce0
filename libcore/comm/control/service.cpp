// SPDX-License-Identifier: Apache-2.0
#include "comm/control/service.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"

namespace hcomm::comm {

namespace {

constexpr uint64_t kWakeId = 0;

thread_local const Service* t_service = nullptr;  // whose thread this is

uint32_t events_of(Service::Want want) {
  switch (want) {
    case Service::Want::nothing:
      return 0;
    case Service::Want::read:
      return EPOLLIN | EPOLLRDHUP;
    case Service::Want::read_write:
      return EPOLLIN | EPOLLRDHUP | EPOLLOUT;
  }
  return 0;
}

// True when the task returned: one that throws has broken its contract and is not called again.
bool run_guarded(const Service::Task& task) {
  try {
    task();
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::error, "service thread: a task failed and is dropped: {}", error.what());
  }
  return false;
}

}  // namespace

Service::Service()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) fail_system(errno, "service thread: make epoll and eventfd descriptors");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeId}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    fail_system(errno, "service thread: epoll_ctl add eventfd");
}

Service::~Service() {
  if (inherited()) {
    (void)thread_.release();  // the thread does not exist here: neither join nor detach
    return;
  }
  HCOMM_CHECK(!here());
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_) thread_->join();
}

bool Service::here() const {
  return t_service == this;
}

void Service::start() {
  if (thread_) return;
  try {
    thread_ = std::make_unique<std::thread>(start_thread("hcomm-service", [this] { loop(); }));
  } catch (const std::system_error& error) {
    fail_system(error.code().value(), "start the service thread");
  }
}

void Service::wake() const {
  const uint64_t one = 1;
  const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  (void)written;  // full: it is awake
}

void Service::watch(int fd, Task ready) {
  if (inherited()) return;
  const Lock lock(mutex_);
  HCOMM_CHECK(!ids_.contains(fd), "fd {} is watched already", fd);
  start();
  const uint64_t id = next_id_++;
  // Into the tables first: the thread may see the event before epoll_ctl has returned.
  watches_.emplace(id, Watch{fd, std::move(ready)});
  ids_.emplace(fd, id);
  epoll_event event{.events = events_of(Want::read), .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  const int error = errno;
  watches_.erase(id);
  ids_.erase(fd);
  fail_system(error, "service thread: epoll_ctl add descriptor {}", fd);
}

void Service::want(int fd, Want what) {
  if (inherited()) return;
  const Lock lock(mutex_);
  const auto found = ids_.find(fd);
  if (found == ids_.end()) return;
  epoll_event event{.events = events_of(what), .data = {.u64 = found->second}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    log(LogLevel::error, "service thread: epoll_ctl modify descriptor {}: {}", fd,
        std::generic_category().message(errno));
}

void Service::unwatch(int fd) {
  if (inherited()) return;
  Task dropped;  // destroyed without the lock
  Lock lock(mutex_);
  const auto found = ids_.find(fd);
  if (found != ids_.end()) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const auto watch = watches_.find(found->second);
    dropped = std::move(watch->second.ready);
    watches_.erase(watch);
    ids_.erase(found);
  }
  // Also where the task has unwatched itself and still runs.
  if (!here()) idle_.wait(lock, [&] { return running_fd_ != fd; });
  lock.unlock();
}

Service::Timer Service::run_after(int64_t ms, Task task) {
  if (inherited()) return 0;
  const Lock lock(mutex_);
  start();
  const Timer timer = next_id_++;
  timers_.emplace(std::pair(now_ns() + std::max<int64_t>(ms, 0) * 1'000'000, timer),
                  std::move(task));
  if (!here()) wake();
  return timer;
}

void Service::cancel(Timer timer) {
  if (inherited() || timer == 0) return;
  Task dropped;
  Lock lock(mutex_);
  const auto found = std::find_if(timers_.begin(), timers_.end(),
                                  [&](const auto& entry) { return entry.first.second == timer; });
  if (found != timers_.end()) {
    dropped = std::move(found->second);
    timers_.erase(found);
  }
  if (!here()) idle_.wait(lock, [&] { return running_timer_ != timer; });
  lock.unlock();
}

void Service::run(const Task& task) {
  if (inherited()) return;
  if (here()) return task();
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  run_after(0, [&] {
    run_guarded(task);
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();  // under the lock: the waiter owns both
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

int Service::wait_ms() const {
  if (timers_.empty()) return -1;
  const int64_t left_ns = timers_.begin()->first.first - now_ns();
  return static_cast<int>(std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, INT_MAX));
}

void Service::loop() {
  t_service = this;
  epoll_event events[64];
  Lock lock(mutex_);
  while (!stop_) {
    const int timeout_ms = wait_ms();
    lock.unlock();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
    HCOMM_CHECK(count >= 0 || errno == EINTR, "epoll_wait: errno {}", errno);
    lock.lock();
    for (int i = 0; i < count && !stop_; i++) {
      if (events[i].data.u64 == kWakeId) {
        uint64_t value = 0;
        const ssize_t bytes = ::read(wake_.get(), &value, sizeof value);
        (void)bytes;
      } else {
        run_watch(lock, events[i].data.u64);
      }
    }
    run_timers(lock);
  }
}

void Service::run_watch(Lock& lock, uint64_t id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;  // unwatched by an earlier task of this round
  Task task = std::move(found->second.ready);
  const int fd = found->second.fd;
  running_fd_ = fd;
  lock.unlock();
  const bool fine = run_guarded(task);
  lock.lock();
  const auto again = watches_.find(id);
  if (again != watches_.end() && fine) {
    again->second.ready = std::move(task);
  } else {
    if (again != watches_.end()) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
      ids_.erase(fd);
      watches_.erase(again);
    }
    lock.unlock();
    task = nullptr;  // what it holds is gone before unwatch returns
    lock.lock();
  }
  running_fd_ = -1;
  idle_.notify_all();
}

void Service::run_timers(Lock& lock) {
  const int64_t now = now_ns();  // what a task adds waits for the next round
  while (!timers_.empty() && timers_.begin()->first.first <= now && !stop_) {
    const auto first = timers_.begin();
    Task task = std::move(first->second);
    running_timer_ = first->first.second;
    timers_.erase(first);
    lock.unlock();
    run_guarded(task);
    task = nullptr;
    lock.lock();
    running_timer_ = 0;
    idle_.notify_all();
  }
}

}  // namespace hcomm::comm
