// SPDX-License-Identifier: Apache-2.0
// What one communicator does in a group: its calls in order, all sends and receives of the group
// merged into one exchange at the place of the first, so that their order does not matter. A Party:
// several batches are driven together. Made by api for the end of a group.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace hcomm::comm {

class Batch final : public engine::Party {
 public:
  // Takes one turn for all calls; from `enter` to its end the communicator is ours. Throws
  // Error(invalid_argument): too many sends and receives.
  Batch(Communicator& communicator, std::vector<Call> calls);

  void enter();  // waits for the turn, begins the first call
  Code code() const { return code_; }  // the first error of the calls
  const engine::Patience& patience() const { return communicator_.patience(); }

  bool advance() override;
  bool finished() const override { return next_ == calls_.size() && !running_; }
  void idle(int64_t since_begin_ns, int64_t since_progress_ns) override {
    communicator_.idle(since_begin_ns, since_progress_ns);
  }
  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) override {
    return communicator_.prepare_sleep(descriptors, cap_ms);
  }
  void after_sleep() override { communicator_.after_sleep(); }

 private:
  void begin_next();

  Communicator& communicator_;
  std::vector<Call> calls_, exchange_;
  Turn turn_;
  size_t next_ = 0;
  bool running_ = false;
  Code code_ = Code::ok;
};

}  // namespace hcomm::comm
