// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <algorithm>
#include <cmath>

namespace train {

namespace {

// Where the parts lie in the one vector.
constexpr size_t kW1 = 0, kB1 = kW1 + kInputs * kHidden, kW2 = kB1 + kHidden;
constexpr size_t kB2 = kW2 + kHidden * kClasses, kWeights = kB2 + kClasses;
constexpr float kMomentum = 0.9f;

// splitmix64, for bits that do not depend on the standard library.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Evenly distributed with the standard deviation of He's rule, sqrt(2 / inputs).
void randomise(std::span<float> weights, size_t inputs, uint64_t& state) {
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
  for (float& weight : weights) {
    const double unit = static_cast<double>(next(state) >> 11) * 0x1p-53;
    weight = static_cast<float>((2 * unit - 1) * bound);
  }
}

void add_to_rows(Matrix& matrix, const float* bias) {
  for (size_t i = 0; i < matrix.rows; i++) {
    const std::span<float> row = matrix.row(i);
    for (size_t j = 0; j < row.size(); j++) row[j] += bias[j];
  }
}

void sum_rows(const Matrix& matrix, float* sums) {
  std::fill_n(sums, matrix.columns, 0.0f);
  for (size_t i = 0; i < matrix.rows; i++) {
    const std::span<const float> row = matrix.row(i);
    for (size_t j = 0; j < row.size(); j++) sums[j] += row[j];
  }
}

}  // namespace

Network::Network(uint64_t seed) : weights_(kWeights), gradients_(kWeights), velocity_(kWeights) {
  randomise(std::span(weights_).subspan(kW1, kInputs * kHidden), kInputs, seed);
  randomise(std::span(weights_).subspan(kW2, kHidden * kClasses), kHidden, seed);
}

void Network::forward(const Matrix& images) {
  hidden_.resize(images.rows, kHidden);
  outputs_.resize(images.rows, kClasses);
  const View w1{weights_.data() + kW1, kInputs, kHidden, kHidden};
  const View w2{weights_.data() + kW2, kHidden, kClasses, kClasses};
  multiply(images.view(), w1, hidden_.values.data());
  add_to_rows(hidden_, weights_.data() + kB1);
  for (float& value : hidden_.values) value = std::max(value, 0.0f);
  multiply(hidden_.view(), w2, outputs_.values.data());
  add_to_rows(outputs_, weights_.data() + kB2);
}

Score Network::judge(std::span<const uint8_t> labels, float scale) {
  Score score;
  for (size_t i = 0; i < outputs_.rows; i++) {
    const std::span<float> row = outputs_.row(i);
    const auto most = std::max_element(row.begin(), row.end());
    const float shift = *most;
    score.right += most - row.begin() == labels[i];
    float sum = 0;
    for (float& value : row) sum += value = std::exp(value - shift);
    score.loss -= std::log(static_cast<double>(row[labels[i]] / sum) + 1e-30);
    for (float& value : row) value *= scale / sum;
    row[labels[i]] -= scale;
  }
  score.images = static_cast<double>(outputs_.rows);
  return score;
}

void Network::backward(const Matrix& images) {
  hidden_gradient_.resize(images.rows, kHidden);
  float* const out = gradients_.data();
  multiply(hidden_.view().transposed(), outputs_.view(), out + kW2);
  sum_rows(outputs_, out + kB2);

  Matrix w2_transposed(kClasses, kHidden);  // so that its columns lie side by side
  for (size_t i = 0; i < kHidden; i++)
    for (size_t j = 0; j < kClasses; j++)
      w2_transposed.row(j)[i] = weights_[kW2 + i * kClasses + j];
  multiply(outputs_.view(), w2_transposed.view(), hidden_gradient_.values.data());
  for (size_t i = 0; i < hidden_.values.size(); i++)
    if (hidden_.values[i] <= 0) hidden_gradient_.values[i] = 0;
  multiply(images.view().transposed(), hidden_gradient_.view(), out + kW1);
  sum_rows(hidden_gradient_, out + kB1);
}

Score Network::learn(const Matrix& images, std::span<const uint8_t> labels, float scale) {
  forward(images);
  const Score score = judge(labels, scale);
  backward(images);
  return score;
}

Score Network::test(const Matrix& images, std::span<const uint8_t> labels) {
  forward(images);
  return judge(labels, 0);
}

void Network::step(float rate) {
  for (size_t i = 0; i < weights_.size(); i++) {
    velocity_[i] = kMomentum * velocity_[i] + gradients_[i];
    weights_[i] -= rate * velocity_[i];
  }
}

}  // namespace train
