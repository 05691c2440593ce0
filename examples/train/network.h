// SPDX-License-Identifier: Apache-2.0
// A classifier of one hidden layer: softmax(relu(x W1 + b1) W2 + b2). All weights lie in one
// vector, as do their gradients, so that one all-reduce carries them. Knows nothing of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix.h"

namespace train {

inline constexpr size_t kInputs = 28 * 28, kHidden = 128, kClasses = 10;

// What a pass over some images gives, as sums, so that ranks can add theirs.
struct Score {
  double loss = 0, right = 0, images = 0;
};

class Network {
 public:
  // He's initial weights from a generator that is the same everywhere.
  explicit Network(uint64_t seed);

  std::span<float> weights() { return weights_; }
  std::span<float> gradients() { return gradients_; }

  // Forward and backward: gradients() = scale * the sum over these images.
  Score learn(const Matrix& images, std::span<const uint8_t> labels, float scale);
  // Forward only.
  Score test(const Matrix& images, std::span<const uint8_t> labels);
  // Momentum of 0.9.
  void step(float rate);

 private:
  void forward(const Matrix& images);
  void backward(const Matrix& images);
  // Turns outputs_ into softmax - one-hot, times scale.
  Score judge(std::span<const uint8_t> labels, float scale);

  std::vector<float> weights_, gradients_, velocity_;
  Matrix hidden_, outputs_, hidden_gradient_;
};

}  // namespace train
