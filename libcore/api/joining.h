// SPDX-License-Identifier: Apache-2.0
// A communicator that is joined in the background (hcommConfig_t.blocking = 0). Shared by its
// handle and the thread that joins, which may outlive the handle. Private to api/.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/process.h"
#include "comm/communicator.h"
#include "hcomm/hcomm.h"

namespace hcomm::api {

class Joining {
 public:
  using Make = std::function<std::unique_ptr<comm::Communicator>()>;
  // Throws std::system_error without threads.
  static std::shared_ptr<Joining> start(const char* call, Make make);

  // hcommInProgress until it has ended.
  hcommResult_t result() const;
  std::string text() const;  // why it failed
  void wait() const;         // ends by the init timeout
  // Whoever has joined leaves at once, unseen; the result is hcommAborted.
  void abandon();
  // After success, once.
  std::unique_ptr<comm::Communicator> take();
  bool of_this_process() const { return generation_ == process_generation(); }

 private:
  void run(const char* call, const Make& make);

  const uint32_t generation_ = process_generation();
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  hcommResult_t result_ = hcommInProgress;
  std::string text_;
  std::unique_ptr<comm::Communicator> communicator_;
};

}  // namespace hcomm::api
