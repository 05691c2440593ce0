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

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Trainer::Trainer(Team& team, const Options& options)
    : team_(team),
      options_(options),
      rank_(team.rank()),
      ranks_(team.size()),
      train_(read_dataset(options.data, Part::train, options.limit)),
      test_(read_dataset(options.data, Part::test, options.limit)),
      network_(options.hidden, options.seed),
      exchange_(team, network_.gradients(), options.bucket / sizeof(float),
                [this](size_t first, size_t last) { network_.step(first, last, options_.rate); }),
      listener_{[this](size_t last) { exchange_.need(last); },
                [this](size_t first) { exchange_.ready(first); }, [this] { exchange_.progress(); }},
      order_(train_.size()),
      shuffle_state_(options.seed) {
  if (train_.images.columns != kInputs)
    throw std::runtime_error(options.data + ": images of " + std::to_string(train_.images.columns) +
                             " pixels, not 28 x 28");
  std::iota(order_.begin(), order_.end(), 0U);
  team_.broadcast(network_.weights());
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
  // Parts may differ by an image: with this scale the sum of the ranks' gradients is the mean over
  // the whole batch.
  return network_.learn(images_, labels_, 1 / static_cast<float>(count), listener_);
}

Score Trainer::total(Score mine) {
  std::array<double, 3> sums{mine.loss, mine.right, mine.images};
  team_.add(sums);
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
  exchange_.take_time();
  const Clock::time_point start = Clock::now();
  Score mine;
  for (size_t first = 0; first < order_.size(); first += options_.batch) {
    const Score score = step(first, std::min(options_.batch, order_.size() - first));
    mine.loss += score.loss;
    mine.right += score.right;
    mine.images += score.images;
  }
  settle();
  const double time_s = seconds(Clock::now() - start);
  std::array<double, 2> sums{time_s, seconds(exchange_.take_time()) / time_s};
  team_.add(sums);
  const double ranks = static_cast<double>(ranks_);
  const Score all = total(mine);
  return {all.loss / all.images, accuracy(), all.images / (sums[0] / ranks), sums[1] / ranks};
}

double Trainer::time_steps() {
  constexpr int kSteps = 8;
  const size_t batch = std::min(options_.batch, order_.size());
  std::array<double, 1> none{};
  team_.add(none);  // all begin together
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kSteps; i++) step(0, batch);
  settle();
  team_.add(none);
  return seconds(Clock::now() - start) / kSteps;
}

StepReport Trainer::measure_step(size_t rounds) {
  const Network::State before = network_.state();
  time_steps();  // warms up
  std::vector<double> usual, mute;
  for (size_t round = 0; round < rounds; round++) {
    usual.push_back(time_steps());
    exchange_.set_mute(true);
    mute.push_back(time_steps());
    exchange_.set_mute(false);
  }
  network_.restore(before);
  return {median(usual), median(mute)};
}

uint64_t Trainer::hash() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float weight : network_.weights()) {
    uint32_t bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (bits >> shift & 255)) * 0x100000001b3u;
  }
  std::vector<float> of_rank_0(network_.weights().begin(), network_.weights().end());
  team_.broadcast(of_rank_0);
  const size_t bytes = of_rank_0.size() * sizeof(float);
  std::array<double, 1> differ{
      std::memcmp(of_rank_0.data(), network_.weights().data(), bytes) == 0 ? 0.0 : 1.0};
  team_.add(differ);
  if (differ[0] != 0) throw std::runtime_error("the ranks' weights differ");
  return hash;
}

}  // namespace train
