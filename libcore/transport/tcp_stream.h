// SPDX-License-Identifier: Apache-2.0
// Messages over one joined socket: what a TCP channel does once it has a connection. In-order bytes
// and the kernel's flow control are all that it needs. Owned by its channel, called by the engine.
// Absent: connecting, sleeping.
//
// On the wire a message is [zeros up to a multiple of 64][32 bytes of head][payload], so that with
// the head at 32 mod 64 in the read-ahead buffer every payload lies at a multiple of 64 there.
// Large messages that are received (not peeked at) bypass the buffer.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "base/fd.h"
#include "transport/transport.h"

namespace hcomm::transport {

class TcpStream {
 public:
  explicit TcpStream(UniqueFd fd);

  Status send(Outgoing& message);
  Status peek(Incoming& message, View& view);
  void release(Incoming& message, size_t bytes);
  Status receive(Incoming& message, std::span<const Segment> to);

  int fd() const { return fd_.get(); }
  // What the last calls found missing: bytes to read, room to write.
  bool wants_read() const { return wants_read_; }
  bool wants_write() const { return wants_write_; }
  void forget_wants() { wants_read_ = wants_write_ = false; }

  // The peer has not acknowledged bytes for 20 s though the kernel keeps asking: its host or the
  // way to it is gone, which no event would tell for a quarter of an hour. The stream then fails.
  // To be asked about once a second.
  bool vanished();
  const std::string& error() const { return error_; }

 private:
  struct Head;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  size_t available() const { return tail_ - head_; }
  void begin_send(Outgoing& message);
  int gather(const Outgoing& message, iovec* to, size_t& bytes);
  void sent(Outgoing& message, size_t bytes);
  Status begin_receive(Incoming& message, size_t read_ahead);
  Status parse(Incoming& message);
  Status fill(size_t limit);
  Status reserve(size_t bytes);
  void consume(size_t bytes);
  void deliver(Incoming& message, std::span<const Segment> to);
  Status read_into(Incoming& message, std::span<const Segment> to);
  Status fail(Code code, std::string text);
  Status fail_errno(const char* what, int error);

  UniqueFd fd_;
  bool wants_read_ = false, wants_write_ = false;
  Status failed_;
  std::string error_;
  int64_t unanswered_since_ns_ = 0;

  // sending: the zeros and the head of the message under way, and all of it when it is small, so
  // that it is one piece for the kernel
  static constexpr size_t kInline = 256;
  alignas(16) std::byte prefix_[96 + kInline];
  uint32_t prefix_at_ = 0, prefix_end_ = 0;
  uint64_t sent_bytes_ = 0, sent_messages_ = 0;

  // receiving: buffer_[head_, tail_) is read ahead, and begins at received_bytes_ of the stream
  std::unique_ptr<std::byte, Free> buffer_;
  size_t capacity_ = 0, head_ = 0, tail_ = 0;
  uint64_t received_bytes_ = 0, received_messages_ = 0;
};

}  // namespace hcomm::transport
