// SPDX-License-Identifier: Apache-2.0
// What all channels share.
#include <algorithm>

#include "base/copy.h"
#include "transport/transport.h"

namespace hcomm::transport {

Segment piece_at(std::span<const Segment> segments, size_t at) {
  for (const Segment& each : segments) {
    if (at < each.bytes) return {each.data + at, each.bytes - at};
    at -= each.bytes;
  }
  return {};
}

void scatter(std::span<const std::byte> from, std::span<const Segment> to, size_t at, Copy copy) {
  for (const Segment& each : to) {
    if (from.empty()) return;
    if (at >= each.bytes) {
      at -= each.bytes;
      continue;
    }
    const size_t part = std::min(each.bytes - at, from.size());
    copy(each.data + at, from.data(), part);
    from = from.subspan(part);
    at = 0;
  }
  HCOMM_CHECK(from.empty(), "{} bytes more than the segments hold", from.size());
}

void gather(std::span<const Segment> from, Position& position, std::span<std::byte> to,
            Copy copy) {
  std::byte* at = to.data();
  for (size_t bytes = to.size(); bytes != 0;) {
    const Segment& segment = from[position.segment];
    const size_t part = std::min(bytes, segment.bytes - position.offset);
    if (part != 0) copy(at, segment.data + position.offset, part);
    at += part;
    bytes -= part;
    position.offset += part;
    if (position.offset == segment.bytes) position = {position.segment + 1, 0};
  }
}

std::string difference_text(const Label& expected, size_t bytes, const Label& sent,
                            size_t sent_bytes) {
  return fmt::format(
      "receive: expected operation {} with signature {:08x} and {} bytes, the peer sent operation "
      "{} with signature {:08x} and {} bytes",
      expected.sequence, expected.signature, bytes, sent.sequence, sent.signature, sent_bytes);
}

Status Channel::receive(Incoming& message, std::span<const Segment> to) {
  while (!message.complete()) {
    View view;
    if (const Status status = peek(message, view); !status.ok()) return status;
    if (view.bytes == 0) break;
    scatter({view.data, view.bytes}, to, message.done, copy_near);
    release(message, view.bytes);
  }
  return {};
}

}  // namespace hcomm::transport
