// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include <csignal>

#include "base/thread.h"

namespace hcomm::engine {

void Event::expect() {
  const std::lock_guard lock(mutex_);
  expected_++;
}

void Event::complete() {
  const std::lock_guard lock(mutex_);
  completed_++;
  changed_.notify_all();
}

bool Event::done() const {
  const std::lock_guard lock(mutex_);
  return completed_ == expected_;
}

uint64_t Event::recorded() const {
  const std::lock_guard lock(mutex_);
  return expected_;
}

void Event::wait(uint64_t recorded) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completed_ >= recorded; });
}

namespace {

// Signals are the application's: a worker starts with all of them blocked.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Stream::Stream() : worker_(start_without_signals([this] { work(); })) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  worker_.join();
}

void Stream::enqueue(std::function<Code()> task) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(task));
  changed_.notify_all();
}

void Stream::record(std::shared_ptr<Event> event) {
  event->expect();
  enqueue([event] {
    event->complete();
    return Code::ok;
  });
}

void Stream::wait_for(std::shared_ptr<Event> event) {
  enqueue([event, target = event->recorded()] {
    event->wait(target);
    return Code::ok;
  });
}

// Operations have deadlines of their own, so this ends when they do.
Code Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  return std::exchange(error_, Code::ok);
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::work() {
  name_thread("hcomm-stream");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<Code()> task = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const Code code = task();
    lock.lock();
    busy_ = false;
    if (error_ == Code::ok) error_ = code;
    changed_.notify_all();
  }
}

}  // namespace hcomm::engine
