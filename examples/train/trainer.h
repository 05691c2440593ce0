// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: every rank has the whole network and a part of each batch; the gradients
// are summed over the ranks, so all take the same step. The result depends on the batch, hardly
// on the number of ranks (float additions are grouped differently).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset.h"
#include "exchange.h"
#include "network.h"
#include "options.h"
#include "team.h"

namespace train {

struct EpochReport {
  double loss = 0, accuracy = 0;  // mean over the training images; share of the test images
  double images_per_s = 0, communication = 0;  // share of the time that this took
};

// Seconds of a step, as usual and of the same step without communication: what is between them is
// exposed, the rest of the communication is hidden behind the computation.
struct StepReport {
  double usual = 0, mute = 0;
};

class Trainer {
 public:
  Trainer(Team& team, const Options& options);

  size_t images() const { return train_.size(); }
  EpochReport epoch();
  // Median of so many rounds, each some steps with and some without communication. Leaves the
  // weights as they were.
  StepReport measure_step(size_t rounds);
  // FNV-1a of the weights' bits. Throws std::runtime_error when ranks differ.
  uint64_t hash();

 private:
  using Clock = Exchange::Clock;
  void shuffle();
  // Trains on this rank's part of order_[first, first + count); the last weights follow as they are
  // needed, or in settle().
  Score step(size_t first, size_t count);
  void settle() { exchange_.need(network_.weights().size()); }
  // Seconds a step, of the slowest rank.
  double time_steps();
  double accuracy();
  // Adds up over the ranks.
  Score total(Score mine);

  Team& team_;
  const Options& options_;
  size_t rank_, ranks_;
  Dataset train_, test_;
  Network network_;
  Exchange exchange_;
  Listener listener_;
  std::vector<uint32_t> order_;
  uint64_t shuffle_state_;
  Matrix images_;
  std::vector<uint8_t> labels_;
};

}  // namespace train
