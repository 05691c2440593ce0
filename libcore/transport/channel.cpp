// SPDX-License-Identifier: Apache-2.0
// What all channels share.
#include <algorithm>
#include <cstring>

#include "transport/transport.h"

namespace hcomm::transport {

Segment piece_at(std::span<const Segment> segments, size_t at) {
  for (const Segment& each : segments) {
    if (at < each.bytes) return {each.data + at, each.bytes - at};
    at -= each.bytes;
  }
  return {};
}

Status Channel::receive(Incoming& message, std::span<const Segment> to) {
  while (!message.complete()) {
    View view;
    if (const Status status = peek(message, view); !status.ok()) return status;
    if (view.bytes == 0) break;
    size_t copied = 0;
    while (copied < view.bytes) {
      const Segment piece = piece_at(to, message.done + copied);
      const size_t bytes = std::min(piece.bytes, view.bytes - copied);
      HCOMM_CHECK(bytes != 0, "segments end at byte {} of {}", message.done + copied,
                  message.bytes);
      std::memcpy(piece.data, view.data + copied, bytes);
      copied += bytes;
    }
    release(message, view.bytes);
  }
  return {};
}

}  // namespace hcomm::transport
