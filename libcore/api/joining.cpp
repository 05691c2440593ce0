// SPDX-License-Identifier: Apache-2.0
#include "api/joining.h"

#include "api/handles.h"
#include "base/thread.h"

namespace hcomm::api {

std::shared_ptr<Joining> Joining::start(const char* call, Make make) {
  auto joining = std::make_shared<Joining>();
  start_thread("hcomm-init", [joining, call, make = std::move(make)] {
    joining->run(call, make);
  }).detach();
  return joining;
}

void Joining::run(const char* call, const Make& make) {
  std::unique_ptr<comm::Communicator> made;
  const hcommResult_t result = guarded(call, [&] {
    made = make();
    return hcommSuccess;
  });
  const std::lock_guard lock(mutex_);
  if (result_ == hcommInProgress) {
    result_ = result;
    text_ = result == hcommSuccess ? "" : last_text();
    communicator_ = std::move(made);
  }
  ended_.notify_all();
}

hcommResult_t Joining::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

std::string Joining::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

void Joining::wait() const {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return result_ != hcommInProgress; });
}

void Joining::abandon() {
  std::unique_ptr<comm::Communicator> joined;  // leaves when the lock is free again
  const std::lock_guard lock(mutex_);
  result_ = hcommAborted;
  text_ = "hcommCommAbort before the communicator was ready";
  joined = std::move(communicator_);
  ended_.notify_all();
}

std::unique_ptr<comm::Communicator> Joining::take() {
  const std::lock_guard lock(mutex_);
  return std::move(communicator_);
}

}  // namespace hcomm::api
