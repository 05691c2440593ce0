// SPDX-License-Identifier: Apache-2.0
// A classifier of fully connected layers: relu between them, softmax at the end. All weights lie in
// one vector, layer after layer, as do their gradients, so that any part of them can be summed over
// the ranks at once. Knows nothing of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "matrix.h"

namespace train {

inline constexpr size_t kInputs = 28 * 28, kClasses = 10;

// What a pass over some images gives, as sums, so that ranks can add theirs.
struct Score {
  double loss = 0, right = 0, images = 0;
};

// What a pass tells while it runs.
struct Listener {
  std::function<void(size_t last)> need;    // weights before `last` are read now
  std::function<void(size_t first)> ready;  // gradients from `first` on are complete
  std::function<void()> progress;           // now and then, every 100 us at least
};

class Network {
 public:
  // He's initial weights from a generator that is the same everywhere. hidden: outputs of each
  // layer but the last.
  Network(std::span<const size_t> hidden, uint64_t seed);

  std::span<float> weights() { return state_.weights; }
  std::span<float> gradients() { return gradients_; }

  // Forward and backward: gradients() = scale * the sum over these images.
  Score learn(const Matrix& images, std::span<const uint8_t> labels, float scale,
              const Listener& listener);
  // Forward only.
  Score test(const Matrix& images, std::span<const uint8_t> labels);
  // Of the weights [first, last), with a momentum of 0.9.
  void step(size_t first, size_t last, float rate);

  // All that steps change.
  struct State {
    std::vector<float> weights, velocity;
  };
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  // weights [inputs x outputs] lie at `first`, one bias an output behind them, until `last`.
  struct Layer {
    size_t inputs, outputs, first, bias, last;
  };

  View weights_of(const Layer& layer) const;
  void forward(const Matrix& images, const Listener& listener);
  void backward(const Matrix& images, const Listener& listener);
  // Turns the outputs into softmax - one-hot, times scale.
  Score judge(std::span<const uint8_t> labels, float scale);

  std::vector<Layer> layers_;
  State state_;
  std::vector<float> gradients_;
  std::vector<Matrix> outputs_;  // of each layer; in backward: their gradients
};

}  // namespace train
