// SPDX-License-Identifier: Apache-2.0
// A control connection with several listeners: the communicator that joined a job and the children
// of its splits share one. Shared by them (any may outlive the others), hence used through
// shared_ptr. Listeners are called in the service thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/control/control.h"

namespace hcomm::comm {

class Line {
 public:
  explicit Line(std::unique_ptr<Control> control) : control_(std::move(control)) {
    control_->on_failure([this](const Failure& failure) { tell(failure); });
  }
  ~Line() { control_->on_failure({}); }

  Control& control() { return *control_; }

  // Told of what failed before, at once, then of each failure until `forget` has returned.
  uint64_t listen(std::function<void(const Failure&)> listener) {
    const std::lock_guard lock(mutex_);
    for (const Failure& failure : failures_) listener(failure);
    listeners_[++last_] = std::move(listener);
    return last_;
  }
  void forget(uint64_t listener) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(listener);
  }

 private:
  void tell(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(failure);
    for (const auto& [id, listener] : listeners_) listener(failure);
  }

  std::mutex mutex_;
  std::vector<Failure> failures_;
  std::map<uint64_t, std::function<void(const Failure&)>> listeners_;
  uint64_t last_ = 0;
  std::unique_ptr<Control> control_;  // last: its callback uses the rest
};

}  // namespace hcomm::comm
