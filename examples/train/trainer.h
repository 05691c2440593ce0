// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: every rank has the whole network and a part of each batch; the gradients
// are averaged over the ranks, so all take the same step. The result depends on the batch, hardly
// on the number of ranks (float additions are grouped differently).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset.h"
#include "hcomm/hcomm.hpp"
#include "network.h"
#include "options.h"

namespace train {

struct EpochReport {
  double loss = 0, accuracy = 0;  // mean over the training images; share of the test images
  double images_per_s = 0, communication = 0;  // share of the time, with waiting for slower ranks
};

class Trainer {
 public:
  Trainer(hcomm::Communicator& world, const Options& options);

  size_t images() const { return train_.size(); }
  EpochReport epoch();
  // FNV-1a of the weights' bits. Throws std::runtime_error when ranks differ.
  uint64_t hash();

 private:
  using Clock = std::chrono::steady_clock;
  void shuffle();
  // Trains on this rank's part of order_[first, first + count).
  Score step(size_t first, size_t count);
  double accuracy();
  // Adds up over the ranks.
  Score total(Score mine);

  hcomm::Communicator& world_;
  const Options& options_;
  size_t rank_, ranks_;
  Dataset train_, test_;
  Network network_;
  std::vector<uint32_t> order_;
  uint64_t shuffle_state_;
  Matrix images_;
  std::vector<uint8_t> labels_;
  Clock::duration communication_{};
};

}  // namespace train
