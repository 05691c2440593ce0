// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <algorithm>
#include <utility>

namespace train {

namespace {

// Both libraries ask the kernel at each call.
constexpr Exchange::Clock::duration kEvery = std::chrono::microseconds(50);

// Adds the time until its end.
class Timed {
 public:
  explicit Timed(Exchange::Clock::duration& sum) : sum_(sum) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { sum_ += Exchange::Clock::now() - start_; }

 private:
  Exchange::Clock::duration& sum_;
  Exchange::Clock::time_point start_ = Exchange::Clock::now();
};

}  // namespace

Exchange::Exchange(Team& team, std::span<float> gradients, size_t bucket, Use use)
    : team_(team),
      use_(std::move(use)),
      gradients_(gradients.size()),
      bucket_(bucket == 0 ? gradients.size() : bucket),
      buckets_((gradients_ + bucket_ - 1) / bucket_),
      used_(buckets_) {
  std::vector<std::span<float>> parts;
  for (size_t i = 0; i < buckets_; i++)
    parts.push_back(gradients.subspan(first_of(i), first_of(i + 1) - first_of(i)));
  team_.prepare(parts);
}

size_t Exchange::first_of(size_t bucket) const {
  return std::min(bucket * bucket_, gradients_);
}

void Exchange::ready(size_t first) {
  if (started_ == 0 && used_ == buckets_) started_ = buckets_, used_ = 0;  // the next step
  const Timed timed(time_);
  for (; started_ > 0 && first_of(started_ - 1) >= first; started_--)
    if (!mute_) team_.start(started_ - 1);
}

void Exchange::progress() {
  if (mute_ || started_ == buckets_ || used_ == buckets_) return;  // nothing is on its way
  const Clock::time_point now = Clock::now();
  if (now - progressed_ < kEvery) return;
  progressed_ = now;
  const Timed timed(time_);
  team_.progress();
}

void Exchange::need(size_t last) {
  for (; used_ < buckets_ && first_of(used_) < last; used_++) {
    if (!mute_) {
      const Timed timed(time_);
      team_.wait(used_);
    }
    use_(first_of(used_), first_of(used_ + 1));
  }
}

}  // namespace train
