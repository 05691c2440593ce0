// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <algorithm>
#include <cmath>

namespace train {

namespace {

constexpr float kMomentum = 0.9f;
constexpr size_t kBlock = 64;  // rows of a gradient that are told at once

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

Network::Network(std::span<const size_t> hidden, uint64_t seed) {
  size_t inputs = kInputs, first = 0;
  const auto add = [&](size_t outputs) {
    const size_t bias = first + inputs * outputs;
    layers_.push_back({inputs, outputs, first, bias, bias + outputs});
    inputs = outputs;
    first = bias + outputs;
  };
  for (const size_t outputs : hidden) add(outputs);
  add(kClasses);
  state_.weights.resize(first);
  state_.velocity.resize(first);
  gradients_.resize(first);
  outputs_.resize(layers_.size());
  for (const Layer& layer : layers_)
    randomise(std::span(state_.weights).subspan(layer.first, layer.bias - layer.first),
              layer.inputs, seed);
}

View Network::weights_of(const Layer& layer) const {
  return {state_.weights.data() + layer.first, layer.inputs, layer.outputs, layer.outputs};
}

void Network::forward(const Matrix& images, const Listener& listener) {
  const Matrix* input = &images;
  for (size_t i = 0; i < layers_.size(); i++) {
    const Layer& layer = layers_[i];
    listener.need(layer.last);
    outputs_[i].resize(images.rows, layer.outputs);
    multiply(input->view(), weights_of(layer), outputs_[i].values.data(), listener.progress);
    add_to_rows(outputs_[i], state_.weights.data() + layer.bias);
    if (i + 1 < layers_.size())
      for (float& value : outputs_[i].values) value = std::max(value, 0.0f);
    input = &outputs_[i];
  }
}

Score Network::judge(std::span<const uint8_t> labels, float scale) {
  Score score;
  Matrix& outputs = outputs_.back();
  for (size_t i = 0; i < outputs.rows; i++) {
    const std::span<float> row = outputs.row(i);
    const auto most = std::max_element(row.begin(), row.end());
    const float shift = *most;
    score.right += most - row.begin() == labels[i];
    float sum = 0;
    for (float& value : row) sum += value = std::exp(value - shift);
    score.loss -= std::log(static_cast<double>(row[labels[i]] / sum) + 1e-30);
    for (float& value : row) value *= scale / sum;
    row[labels[i]] -= scale;
  }
  score.images = static_cast<double>(outputs.rows);
  return score;
}

// The layers' outputs give way to their gradients, from the last one on.
void Network::backward(const Matrix& images, const Listener& listener) {
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const View input = i == 0 ? images.view() : outputs_[i - 1].view();
    const View gradient = outputs_[i].view();
    sum_rows(outputs_[i], gradients_.data() + layer.bias);
    for (size_t end = layer.inputs; end > 0;) {
      const size_t row = (end - 1) / kBlock * kBlock, first = layer.first + row * layer.outputs;
      multiply(input.transposed().subrows(row, end - row), gradient, gradients_.data() + first,
               listener.progress);
      listener.ready(first);
      end = row;
    }
    if (i == 0) continue;
    Matrix before(images.rows, layer.inputs);
    multiply(gradient, weights_of(layer).transposed(), before.values.data(), listener.progress);
    for (size_t j = 0; j < before.values.size(); j++)
      if (outputs_[i - 1].values[j] <= 0) before.values[j] = 0;
    std::swap(outputs_[i - 1], before);
  }
}

Score Network::learn(const Matrix& images, std::span<const uint8_t> labels, float scale,
                     const Listener& listener) {
  forward(images, listener);
  const Score score = judge(labels, scale);
  backward(images, listener);
  return score;
}

Score Network::test(const Matrix& images, std::span<const uint8_t> labels) {
  forward(images, {[](size_t) {}, [](size_t) {}, [] {}});
  return judge(labels, 0);
}

void Network::step(size_t first, size_t last, float rate) {
  for (size_t i = first; i < last; i++) {
    state_.velocity[i] = kMomentum * state_.velocity[i] + gradients_[i];
    state_.weights[i] -= rate * state_.velocity[i];
  }
}

}  // namespace train
