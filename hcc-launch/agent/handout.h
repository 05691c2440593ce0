// SPDX-License-Identifier: Apache-2.0
// What a job's ranks share and the agent makes for them: the listening socket of rank 0, bound here
// so that its port is held from the choice to the use, and the recorder's memory, which the
// launcher reads when a rank has failed. Owned by the agent.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace hcomm::launch {

class Handout {
 public:
  explicit Handout(uint32_t ranks);  // throws system errors
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout();

  const std::string& root() const { return root_; }  // "127.0.0.1:40123"
  int root_fd() const { return listener_.get(); }
  int recorder_fd() const { return recorder_.get(); }
  const void* area(uint32_t rank) const;  // of the recorder, for trace::read_rank

  // After the ranks have started rank 0 alone holds the socket: when it dies, connecting fails.
  void close_root() { listener_.reset(); }

 private:
  UniqueFd listener_, recorder_;
  std::string root_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace hcomm::launch
