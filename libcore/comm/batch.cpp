// SPDX-License-Identifier: Apache-2.0
#include "comm/batch.h"

#include "base/error.h"

namespace hcomm::comm {

using schedule::Collective;

Batch::Batch(Communicator& communicator, std::vector<Call> calls)
    : communicator_(communicator) {
  for (const Call& call : calls) {
    if (call.collective != Collective::point_to_point) {
      calls_.push_back(call);
      continue;
    }
    if (exchange_.empty()) calls_.push_back(call);
    exchange_.push_back(call);
  }
  if (exchange_.size() > kMaxExchanged)
    fail(Code::invalid_argument,
         "a group of {} sends and receives of communicator {}; {} is the most: end groups sooner",
         exchange_.size(), communicator.config().name, kMaxExchanged);
  if (const size_t wrong = first_dependent(calls_); wrong < calls_.size())
    fail(Code::invalid_argument,
         "all-reduce number {} of a group of communicator {} reads or writes what an earlier one "
         "writes; they may travel as one: end the group between them",
         wrong + 1, communicator.config().name);
}

void Batch::start() {
  next_ = 0;
  code_ = Code::ok;
  turn_.emplace(communicator_);
}

void Batch::enter() {
  turn_->enter();
  if (steps_.empty()) merge();
  begin_next();
}

// In turn: plans are looked up.
void Batch::merge() {
  try {
    const Prices prices = communicator_.prices();
    for (std::span<const Call> left = calls_; !left.empty();) {
      const size_t count = worth_merging(left, prices);
      Step& step = steps_.emplace_back();
      if (count > 1) step.fusion = std::make_unique<Fusion>(left.first(count));
      step.call = count > 1 ? step.fusion->call() : left.front();
      left = left.subspan(count);
    }
  } catch (const std::exception&) {
    communicator_.cannot_begin();
    steps_.clear();
    code_ = communicator_.end();
  }
}

void Batch::begin_next() {
  if (code_ != Code::ok || next_ == steps_.size()) {
    running_ = false;
    turn_.reset();
    return;
  }
  const Step& step = steps_[next_++];
  if (step.fusion) step.fusion->pack();
  if (step.call.collective == Collective::point_to_point)
    communicator_.begin_exchange(exchange_);
  else
    communicator_.begin(step.call);
  running_ = true;
}

bool Batch::advance() {
  if (!running_) {
    if (!turn_->has_come()) return false;
    enter();
    return true;
  }
  const bool moved = communicator_.advance();
  if (!communicator_.finished()) return moved;
  code_ = communicator_.end();
  const Step& step = steps_[next_ - 1];
  if (step.fusion && code_ == Code::ok) step.fusion->unpack();
  begin_next();
  return true;
}

// Before the place has come the communicator is another's, who has the deadline.
void Batch::idle(int64_t passed_ns, int64_t since_progress_ns) {
  if (running_) communicator_.idle(passed_ns, since_progress_ns);
}

bool Batch::prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) {
  if (running_) return communicator_.prepare_sleep(descriptors, cap_ms);
  cap_ms = 1;  // nothing tells a sleeper that a place has come
  return true;
}

void Batch::after_sleep() {
  if (running_) communicator_.after_sleep();
}

}  // namespace hcomm::comm
