// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include "base/log.h"
#include "base/thread.h"
#include "engine/drive.h"

namespace hcomm::engine {

void Mark::pass() {
  const std::lock_guard lock(mutex_);
  passed_ = true;
  changed_.notify_all();
}

bool Mark::passed() const {
  const std::lock_guard lock(mutex_);
  return passed_;
}

// Before a mark stand operations only, and each has its deadline.
void Mark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return passed_; });
}

void Event::record(std::shared_ptr<Mark> mark) {
  const std::lock_guard lock(mutex_);
  last_ = std::move(mark);
}

std::shared_ptr<Mark> Event::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool Event::done() const {
  const std::shared_ptr<Mark> mark = last();
  return mark == nullptr || mark->passed();
}

namespace {

// Nothing may leave a thread's root.
Code run(const std::function<Code()>& task) noexcept {
  try {
    return task();
  } catch (const Error& error) {
    log(LogLevel::error, "in a stream: {}", error.text());
    return error.code();
  } catch (const std::exception& error) {
    log(LogLevel::error, "in a stream: {}", error.what());
    return Code::internal;
  }
}

}  // namespace

Stream::Stream() : worker_(start_thread("hcomm-stream", [this] { work(); })) {}

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

std::shared_ptr<Mark> Stream::mark() {
  auto mark = std::make_shared<Mark>();
  enqueue([mark] {
    mark->pass();
    return Code::ok;
  });
  return mark;
}

void Stream::wait_for(std::shared_ptr<Mark> mark) {
  if (mark == nullptr) return;
  enqueue([mark = std::move(mark)] {
    mark->wait();
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
  drive_in_background();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<Code()> task = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const Code code = run(task);
    lock.lock();
    busy_ = false;
    if (error_ == Code::ok) error_ = code;
    changed_.notify_all();
  }
}

}  // namespace hcomm::engine
