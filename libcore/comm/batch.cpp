// SPDX-License-Identifier: Apache-2.0
#include "comm/batch.h"

namespace hcomm::comm {

using schedule::Collective;

Batch::Batch(Communicator& communicator, std::vector<Call> calls)
    : communicator_(communicator), ticket_(communicator.take_ticket()) {
  for (const Call& call : calls) {
    if (call.collective != Collective::point_to_point) {
      calls_.push_back(call);
      continue;
    }
    if (exchange_.empty()) calls_.push_back(call);
    exchange_.push_back(call);
  }
}

void Batch::enter() {
  communicator_.enter(ticket_);
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

Code Batch::leave() {
  communicator_.leave();
  return code_;
}

}  // namespace hcomm::comm
