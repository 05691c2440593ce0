// SPDX-License-Identifier: Apache-2.0
#include "trainer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

namespace train {

namespace {

// Part `index` of `parts` of `count` things: [first, last).
std::pair<size_t, size_t> share(size_t count, size_t index, size_t parts) {
  return {count * index / parts, count * (index + 1) / parts};
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Trainer::Trainer(hcomm::Communicator& world, const Options& options)
    : world_(world),
      options_(options),
      rank_(static_cast<size_t>(world.rank())),
      ranks_(static_cast<size_t>(world.size())),
      train_(read_dataset(options.data, Part::train, options.limit)),
      test_(read_dataset(options.data, Part::test, options.limit)),
      network_(options.seed),
      order_(train_.size()),
      shuffle_state_(options.seed) {
  if (train_.images.columns != kInputs)
    throw std::runtime_error(options.data + ": images of " + std::to_string(train_.images.columns) +
                             " pixels, not 28 x 28");
  std::iota(order_.begin(), order_.end(), 0U);
  world_.broadcast(network_.weights(), 0);
}

// The same order on every rank. mt19937_64 and the swaps are fixed by the standard and by us.
void Trainer::shuffle() {
  std::mt19937_64 random(shuffle_state_++);
  for (size_t i = order_.size(); i > 1; i--) std::swap(order_[i - 1], order_[random() % i]);
}

Score Trainer::step(size_t first, size_t count) {
  const auto [begin, end] = share(count, rank_, ranks_);
  images_.resize(end - begin, kInputs);
  labels_.resize(end - begin);
  for (size_t i = begin; i < end; i++) {
    const uint32_t image = order_[first + i];
    std::ranges::copy(std::as_const(train_.images).row(image), images_.row(i - begin).begin());
    labels_[i - begin] = train_.labels[image];
  }
  // Parts may differ by an image: with this scale the average of the ranks' gradients is the mean
  // over the whole batch.
  const float scale = static_cast<float>(ranks_) / static_cast<float>(count);
  const Score score = network_.learn(images_, labels_, scale);

  const Clock::time_point start = Clock::now();
  world_.all_reduce(network_.gradients(), hcommAvg);
  communication_ += Clock::now() - start;
  network_.step(options_.rate);
  return score;
}

Score Trainer::total(Score mine) {
  std::array<double, 3> sums{mine.loss, mine.right, mine.images};
  world_.all_reduce(sums);
  return {sums[0], sums[1], sums[2]};
}

double Trainer::accuracy() {
  const auto [begin, end] = share(test_.size(), rank_, ranks_);
  Matrix part(end - begin, kInputs);
  std::copy_n(test_.images.values.begin() + static_cast<std::ptrdiff_t>(begin * kInputs),
              part.values.size(), part.values.begin());
  const Score all = total(network_.test(part, std::span(test_.labels).subspan(begin, part.rows)));
  return all.right / all.images;
}

EpochReport Trainer::epoch() {
  shuffle();
  communication_ = {};
  const Clock::time_point start = Clock::now();
  Score mine;
  for (size_t first = 0; first < order_.size(); first += options_.batch) {
    const Score score = step(first, std::min(options_.batch, order_.size() - first));
    mine.loss += score.loss;
    mine.right += score.right;
    mine.images += score.images;
  }
  const double time_s = seconds(Clock::now() - start);
  std::array<double, 2> mean{time_s, seconds(communication_) / time_s};
  const Score all = total(mine);
  world_.all_reduce(mean, hcommAvg);
  return {all.loss / all.images, accuracy(), all.images / mean[0], mean[1]};
}

uint64_t Trainer::hash() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float weight : network_.weights()) {
    uint32_t bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (bits >> shift & 255)) * 0x100000001b3u;
  }
  std::array<uint64_t, 2> extremes{hash, ~hash};  // the least is the complement of a maximum
  world_.all_reduce(extremes, hcommMax);
  if (extremes[0] != ~extremes[1]) throw std::runtime_error("the ranks' weights differ");
  return hash;
}

}  // namespace train
