// SPDX-License-Identifier: Apache-2.0
// What one communicator does in a group: its calls in order, all sends and receives of the group
// merged into one exchange at the place of the first, so that their order does not matter, small
// all-reduces into fewer larger ones. A Party: several batches are driven together; it can be
// started again when it has finished. Made by api for the end of a group, or for a plan.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/fusion.h"

namespace hcomm::comm {

// Sends and receives of a group: each has a number among the 16-bit numbers of buffers.
inline constexpr size_t kMaxExchanged = 60'000;

class Batch final : public engine::Party {
 public:
  // Throws Error(invalid_argument): too many sends and receives, or all-reduces that depend on one
  // another.
  Batch(Communicator& communicator, std::vector<Call> calls);

  // Takes one place for all calls in the order of the communicator's; when it comes the first
  // begins, and until all have ended the communicator is ours. Without memory of its own.
  void start();
  void enter();  // waits for the place to come; without, `advance` looks whether it has
  Code code() const { return code_; }  // the first error of the calls
  Communicator& communicator() { return communicator_; }
  const engine::Patience& patience() const { return communicator_.patience(); }

  bool advance() override;
  bool finished() const override { return !turn_; }
  void idle(int64_t passed_ns, int64_t since_progress_ns) override;
  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) override;
  void after_sleep() override;

 private:
  // A call, or several as one.
  struct Step {
    Call call;
    std::unique_ptr<Fusion> fusion;
  };
  void merge();
  void begin_next();

  Communicator& communicator_;
  std::vector<Call> calls_, exchange_;
  std::vector<Step> steps_;   // of the calls; made when the first turn has come
  std::optional<Turn> turn_;  // from start to end
  size_t next_ = 0;           // step
  bool running_ = false;  // a step is: the place has come
  Code code_ = Code::ok;
};

}  // namespace hcomm::comm
