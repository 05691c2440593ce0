// SPDX-License-Identifier: Apache-2.0
// Copies standard input to every rank (--stdin all), byte for byte, at the pace of the slowest: the
// next block is read when all have taken the last one. A rank that closed its end is left out.
// Owned by front. Absent: the usual case, one rank that reads; that rank has our standard input
// itself, so nothing is read that it did not ask for.
#pragma once

#include <cstddef>
#include <vector>

#include "base/fd.h"
#include "hcc-launch/agent/loop.h"

namespace hcomm::launch {

class InputPump {
 public:
  // outlets: the writing ends of the ranks' pipes.
  InputPump(Loop& loop, int source, std::vector<UniqueFd> outlets);
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;
  ~InputPump() { close(); }

 private:
  struct Outlet {
    UniqueFd fd;
    size_t written = 0;  // of the block
    bool watched = false;
  };

  void wait_for_source();
  void read_block();
  void write_block();
  void write_to(Outlet& outlet);
  void drop(Outlet& outlet);
  void close();

  Loop& loop_;
  int source_;
  bool source_watched_ = false;
  std::vector<Outlet> outlets_;
  std::vector<char> block_;
  size_t bytes_ = 0;
  Loop::TimerId timer_ = 0;
};

}  // namespace hcomm::launch
