// SPDX-License-Identifier: Apache-2.0
#include "comm/batch.h"

#include "base/error.h"

namespace hcomm::comm {

using schedule::Collective;

// Each has a number among the 16-bit numbers of buffers.
constexpr size_t kMaxExchanged = 60000;

Batch::Batch(Communicator& communicator, std::vector<Call> calls)
    : communicator_(communicator), turn_(communicator) {
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
}

void Batch::enter() {
  turn_.enter();
  begin_next();
}

void Batch::begin_next() {
  if (next_ == calls_.size()) return;
  const Call& call = calls_[next_++];
  if (call.collective == Collective::point_to_point)
    communicator_.begin_exchange(exchange_);
  else
    communicator_.begin(call);
  running_ = true;
}

bool Batch::advance() {
  const bool moved = communicator_.advance();
  if (!communicator_.finished()) return moved;
  code_ = communicator_.end();
  running_ = false;
  if (code_ != Code::ok) next_ = calls_.size();
  begin_next();
  return true;
}

}  // namespace hcomm::comm
