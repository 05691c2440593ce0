// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/copy.h"
#include "transport/socket.h"

namespace hcomm::transport {

struct TcpStream::Head {
  uint32_t magic = 0x48434d31;  // bytes out of step are noticed at the next message
  uint32_t reserved = 0;
  Label label;
  uint64_t bytes = 0;
  uint64_t number = 0;  // of the message in the stream
};

namespace {

constexpr size_t kHead = 32, kAlign = 64;
constexpr size_t kSmallBuffer = 64 * kKiB;   // what a channel of small messages needs
constexpr size_t kLargeBuffer = 256 * kKiB;  // a reduction's piece of a large message, within L2
constexpr size_t kDirect = 8 * kKiB;         // from here on straight into place
constexpr size_t kCheapMove = 256;           // bytes moved rather than left in the way
constexpr int kMaxPieces = 32;               // of one system call
constexpr int64_t kVanishedMs = 20'000;

size_t padding(uint64_t position) {
  return (kAlign - position % kAlign) % kAlign;
}

}  // namespace

TcpStream::TcpStream(UniqueFd fd) : fd_(std::move(fd)) {
  static_assert(sizeof(Head) == kHead);
}

Status TcpStream::fail(Code code, std::string text) {
  if (failed_.ok()) {
    failed_ = code;
    error_ = std::move(text);
  }
  return failed_;
}

Status TcpStream::fail_errno(const char* what, int error) {
  // Whatever ends a connection that stood is the peer's end or the way to it.
  const bool local = error == ENOMEM || error == ENOBUFS || error == EBADF || error == EFAULT ||
                     error == EINVAL || error == ENOTSOCK;
  return fail(local ? Code::system : Code::peer_failed,
              fmt::format("{}: {}", what, socket_error_text(error)));
}

// ---- sending

void TcpStream::begin_send(Outgoing& message) {
  HCOMM_CHECK(prefix_at_ == prefix_end_, "the message before is not handed over");
  Head head;
  head.label = message.label;
  head.bytes = message.bytes;
  head.number = message.ticket = ++sent_messages_;
  const size_t pad = padding(sent_bytes_);
  std::memset(prefix_, 0, pad);
  std::memcpy(prefix_ + pad, &head, kHead);
  prefix_at_ = 0;
  prefix_end_ = static_cast<uint32_t>(pad + kHead);
  if (message.bytes > kInline) return;
  for (; message.position.segment < message.segment_count; message.position.segment++) {
    const Segment& segment = message.segments[message.position.segment];
    message.done += segment.bytes;
    HCOMM_CHECK(message.done <= message.bytes, "segments hold more than {} bytes", message.bytes);
    if (segment.bytes > 0) std::memcpy(prefix_ + prefix_end_, segment.data, segment.bytes);
    prefix_end_ += static_cast<uint32_t>(segment.bytes);
  }
}

int TcpStream::gather(const Outgoing& message, iovec* to, size_t& bytes) {
  int count = 0;
  bytes = 0;
  const auto piece = [&](std::byte* data, size_t length) {
    to[count++] = {data, length};
    bytes += length;
  };
  if (prefix_at_ < prefix_end_) piece(prefix_ + prefix_at_, prefix_end_ - prefix_at_);
  size_t offset = message.position.offset;
  const uint32_t first = message.position.segment;
  for (uint32_t i = first; i < message.segment_count && count < kMaxPieces; i++) {
    const Segment& segment = message.segments[i];
    if (segment.bytes > offset) piece(segment.data + offset, segment.bytes - offset);
    offset = 0;
  }
  return count;
}

void TcpStream::sent(Outgoing& message, size_t bytes) {
  sent_bytes_ += bytes;
  const size_t of_prefix = std::min<size_t>(bytes, prefix_end_ - prefix_at_);
  prefix_at_ += static_cast<uint32_t>(of_prefix);
  message.begun = prefix_at_ == prefix_end_;
  bytes -= of_prefix;
  message.done += bytes;
  message.position.offset += bytes;
  while (message.position.segment < message.segment_count &&
         message.position.offset >= message.segments[message.position.segment].bytes) {
    message.position.offset -= message.segments[message.position.segment].bytes;
    message.position.segment++;
  }
}

Status TcpStream::send(Outgoing& message) {
  if (!failed_.ok()) return failed_;
  if (message.complete) return {};
  if (message.ticket == 0) begin_send(message);
  wants_write_ = false;
  while (!message.begun || message.done < message.bytes) {
    iovec pieces[kMaxPieces];
    size_t bytes = 0;
    msghdr call{};
    call.msg_iov = pieces;
    call.msg_iovlen = static_cast<size_t>(gather(message, pieces, bytes));
    HCOMM_CHECK(bytes > 0, "segments hold less than {} bytes", message.bytes);
    constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
    const ssize_t moved = call.msg_iovlen == 1
                              ? ::send(fd_.get(), pieces[0].iov_base, bytes, kFlags)
                              : ::sendmsg(fd_.get(), &call, kFlags);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && !again(errno)) return fail_errno("send", errno);
    if (moved > 0) sent(message, static_cast<size_t>(moved));
    if (moved < 0 || static_cast<size_t>(moved) < bytes) {
      wants_write_ = true;  // the kernel's buffer is full
      return {};
    }
  }
  message.complete = true;
  return {};
}

// ---- receiving

Status TcpStream::reserve(size_t bytes) {
  const size_t wanted = bytes > kSmallBuffer ? kLargeBuffer : kSmallBuffer;
  if (capacity_ >= wanted) return {};
  std::unique_ptr<std::byte, Free> larger(
      static_cast<std::byte*>(std::aligned_alloc(kAlign, wanted)));
  if (!larger) return fail_errno("allocate a buffer for reading ahead", ENOMEM);
  if (available() > 0) std::memcpy(larger.get() + head_, buffer_.get() + head_, available());
  buffer_ = std::move(larger);
  capacity_ = wanted;
  return {};
}

void TcpStream::consume(size_t bytes) {
  head_ += bytes;
  received_bytes_ += bytes;
}

// Reads what is there, at most `limit` bytes, behind what the buffer holds.
Status TcpStream::fill(size_t limit) {
  if (head_ == tail_) {
    head_ = tail_ = (received_bytes_ + kHead) % kAlign;
  } else if (head_ >= kAlign && (available() <= kCheapMove || tail_ == capacity_)) {
    const size_t front = head_ % kAlign;
    std::memmove(buffer_.get() + front, buffer_.get() + head_, available());
    tail_ = front + available();
    head_ = front;
  }
  for (;;) {
    const ssize_t got =
        ::recv(fd_.get(), buffer_.get() + tail_, std::min(limit, capacity_ - tail_), MSG_DONTWAIT);
    if (got > 0) {
      tail_ += static_cast<size_t>(got);
      return {};
    }
    if (got == 0) return fail(Code::peer_failed, "receive: the peer closed the connection");
    if (errno == EINTR) continue;
    if (!again(errno)) return fail_errno("receive", errno);
    wants_read_ = true;
    return {};
  }
}

// Takes the head off the buffer when it is there and fits.
Status TcpStream::parse(Incoming& message) {
  consume(std::min(available(), padding(received_bytes_)));
  if (padding(received_bytes_) != 0 || available() < kHead) return {};
  Head head;
  std::memcpy(&head, buffer_.get() + head_, kHead);
  if (head.magic != Head{}.magic || head.number != received_messages_ + 1)
    return fail(Code::internal, "receive: the bytes of the stream are out of step");
  if (head.label != message.label || head.bytes != message.bytes) {
    // The head stays: this is not a broken stream, the ranks are in different operations.
    if (error_.empty())
      error_ = difference_text(message.label, message.bytes, head.label, head.bytes);
    return Code::invalid_usage;
  }
  consume(kHead);
  received_messages_++;
  message.begun = true;
  return {};
}

// Reads ahead at most `read_ahead` bytes beyond the head.
Status TcpStream::begin_receive(Incoming& message, size_t read_ahead) {
  if (message.begun) return {};
  if (Status status = parse(message); !status.ok() || message.begun) return status;
  const size_t missing = padding(received_bytes_) + kHead - available();
  if (Status status = fill(missing + read_ahead); !status.ok()) return status;
  return parse(message);
}

Status TcpStream::peek(Incoming& message, View& view) {
  view = {};
  if (!failed_.ok()) return failed_;
  wants_read_ = false;
  if (Status status = reserve(message.bytes); !status.ok()) return status;
  if (Status status = begin_receive(message, capacity_); !status.ok()) return status;
  const size_t rest = message.bytes - message.done;
  const size_t least = std::min(kAlign, rest);
  if (message.begun && available() < least) {
    if (Status status = fill(capacity_); !status.ok()) return status;
  }
  if (!message.begun || available() < least) {
    wants_read_ = true;
    return {};
  }
  view = {buffer_.get() + head_, std::min(available(), rest)};
  return {};
}

void TcpStream::release(Incoming& message, size_t bytes) {
  consume(bytes);
  message.done += bytes;
}

// Copies what the buffer holds of the message to its place.
void TcpStream::deliver(Incoming& message, std::span<const Segment> to) {
  const size_t bytes = std::min(available(), message.bytes - message.done);
  scatter({buffer_.get() + head_, bytes}, to, message.done, copy_near);
  release(message, bytes);
}

// Reads once straight into place; wants_read_ tells that there was less than asked for.
Status TcpStream::read_into(Incoming& message, std::span<const Segment> to) {
  iovec pieces[kMaxPieces];
  int count = 0;
  size_t before = 0, asked = 0;
  for (size_t i = 0; i < to.size() && count < kMaxPieces; i++) {
    const size_t end = before + to[i].bytes;
    const size_t from = std::max(before, message.done + asked);
    if (from < end) {
      pieces[count++] = {to[i].data + (from - before), end - from};
      asked += end - from;
    }
    before = end;
  }
  HCOMM_CHECK(asked > 0, "segments hold {} of {} bytes", before, message.bytes);
  ssize_t got = 0;
  do {
    got = ::readv(fd_.get(), pieces, count);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return fail(Code::peer_failed, "receive: the peer closed the connection");
  if (got < 0 && !again(errno)) return fail_errno("receive", errno);
  const size_t moved = got < 0 ? 0 : static_cast<size_t>(got);
  received_bytes_ += moved;
  message.done += moved;
  wants_read_ = moved < asked;
  return {};
}

Status TcpStream::receive(Incoming& message, std::span<const Segment> to) {
  if (!failed_.ok()) return failed_;
  wants_read_ = false;
  if (Status status = reserve(0); !status.ok()) return status;
  const bool large = message.bytes >= kDirect;
  if (Status status = begin_receive(message, large ? 0 : capacity_); !status.ok()) return status;
  if (message.begun) deliver(message, to);
  while (message.begun && message.done < message.bytes && !wants_read_) {
    Status status = large ? read_into(message, to) : fill(capacity_);
    if (!status.ok()) return status;
    if (!large) deliver(message, to);
  }
  wants_read_ = !message.complete();
  return {};
}

bool TcpStream::vanished() {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (!failed_.ok() || getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
    return false;
  // A peer that is only slow or stopped still has a kernel that acknowledges, also a probe of its
  // closed window; TCP_USER_TIMEOUT would end such connections too, so it is not used. One lost
  // probe says nothing, since the next may be a minute away.
  if (info.tcpi_retransmits == 0 && info.tcpi_probes < 2) {
    unanswered_since_ns_ = 0;
    return false;
  }
  const int64_t now = now_ns();
  const int64_t unanswered_ms = (now - unanswered_since_ns_) / 1'000'000;
  if (unanswered_since_ns_ == 0 || info.tcpi_last_ack_recv < unanswered_ms) {
    unanswered_since_ns_ = now;
    return false;
  }
  if (unanswered_ms < kVanishedMs) return false;
  (void)fail(Code::peer_failed,
             fmt::format("no answer of the peer's host for {} s", unanswered_ms / 1000));
  return true;
}

}  // namespace hcomm::transport
