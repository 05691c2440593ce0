// SPDX-License-Identifier: Apache-2.0
// Measures one cell of a sweep over algorithms: all contenders take one turn a round, the order
// moving on by one, so that whatever the machine does it does to all of them. Each is checked
// before its first turn. Collective; the result is the same on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hcc-bench/buffers.h"
#include "hcc-bench/choice/contender.h"
#include "hcc-bench/choice/result.h"
#include "hcc-bench/run.h"

namespace hcomm::choice {

class Match {
 public:
  Match(bench::Session& session, const bench::Sweep& sweep, const bench::Buffers& buffers,
        size_t bytes);

  // In their order, but for those that cannot run this shape as they were forced to. `epoch` counts
  // the checks of a run, and goes on.
  Cell run(std::span<const Contender> contenders, uint64_t& epoch);
  bool interrupted() const { return interrupted_; }
  size_t bytes() const { return at_root_.layout.bytes; }  // as counted
  size_t block_bytes() const { return at_root_.layout.count * size_of(sweep_.type); }

 private:
  struct Entry {
    const Contender* contender;
    Rival rival;
    int64_t batch = 0;  // operations of a sample, from the first turn on
  };

  const bench::Task& task(int root);
  int next_root();
  void once(const Entry& entry, int root);
  void check(Entry& entry, uint64_t epoch);
  void turn(Entry& entry);

  bench::Session& session_;
  const bench::Sweep& sweep_;
  size_t bytes_;
  bench::Task at_root_{}, other_{};
  int turn_ = 0;  // the next root, where they rotate
  bool interrupted_ = false;
};

}  // namespace hcomm::choice
