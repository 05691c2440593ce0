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

void scatter(const std::byte* from, size_t bytes, std::span<const Segment> to, size_t at) {
  for (const Segment& each : to) {
    if (bytes == 0) return;
    if (at >= each.bytes) {
      at -= each.bytes;
      continue;
    }
    const size_t part = std::min(each.bytes - at, bytes);
    copy_near(each.data + at, from, part);
    from += part;
    bytes -= part;
    at = 0;
  }
  HCOMM_CHECK(bytes == 0, "{} bytes more than the segments hold", bytes);
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
    scatter(view.data, view.bytes, to, message.done);
    release(message, view.bytes);
  }
  return {};
}

}  // namespace hcomm::transport
