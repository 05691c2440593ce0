// SPDX-License-Identifier: Apache-2.0
#include "comm/control/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"

namespace hcomm::comm {

namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kReadBytes = 64 << 10;
constexpr int kReadsPerTurn = 16;  // then others have their turn
constexpr size_t kMaxQueueBytes = 256u << 20;

uint32_t load_u32(const char* from) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; i--) value = value << 8 | static_cast<uint8_t>(from[i]);
  return value;
}

}  // namespace

void FrameReader::append(std::string_view bytes) {
  if (broken_) return;
  if (at_ > 0 && at_ >= buffer_.size() / 2) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  buffer_ += bytes;
}

std::optional<Frame> FrameReader::next() {
  const size_t pending = buffer_.size() - at_;
  if (broken_ || pending < kLengthBytes) return std::nullopt;
  const uint32_t length = load_u32(buffer_.data() + at_);
  if (length == 0 || length > max_bytes_) {
    broken_ = true;
    buffer_ = {};
    at_ = 0;
    return std::nullopt;
  }
  if (pending < kLengthBytes + length) return std::nullopt;
  const char* body = buffer_.data() + at_ + kLengthBytes;
  Frame frame{static_cast<Kind>(body[0]), std::string(body + 1, length - 1)};
  at_ += kLengthBytes + length;
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
    if (buffer_.capacity() > 4 * kReadBytes) buffer_.shrink_to_fit();
  }
  return frame;
}

Encoder::Encoder(Kind kind) : bytes_(kLengthBytes, '\0') {
  u8(static_cast<uint8_t>(kind));
}

Encoder& Encoder::u8(uint8_t value) {
  bytes_ += static_cast<char>(value);
  return *this;
}

Encoder& Encoder::u32(uint32_t value) {
  for (int i = 0; i < 4; i++) u8(static_cast<uint8_t>(value >> 8 * i));
  return *this;
}

Encoder& Encoder::u64(uint64_t value) {
  return u32(static_cast<uint32_t>(value)).u32(static_cast<uint32_t>(value >> 32));
}

Encoder& Encoder::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

Encoder& Encoder::text(std::string_view bytes) {
  return u32(static_cast<uint32_t>(bytes.size())).raw(bytes);
}

std::string Encoder::take() {
  const size_t length = bytes_.size() - kLengthBytes;
  if (length > kMaxFrameBytes)
    fail(Code::invalid_argument, "a control message of {} bytes; the limit is {}", length,
         kMaxFrameBytes);
  for (size_t i = 0; i < kLengthBytes; i++) bytes_[i] = static_cast<char>(length >> 8 * i & 0xff);
  return std::move(bytes_);
}

std::string_view Decoder::raw(size_t bytes) {
  if (bytes > rest_.size()) {
    fine_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

uint64_t Decoder::number(size_t bytes) {
  const std::string_view taken = raw(bytes);
  uint64_t value = 0;
  for (size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
  return value;
}

Packet packet(Encoder& encoder) {
  return std::make_shared<const std::string>(encoder.take());
}

Link::Link(Service& service, UniqueFd fd, FrameReader reader)
    : service_(service), fd_(std::move(fd)), reader_(std::move(reader)) {}

Link::~Link() {
  stop();
}

void Link::start(Service::Task ready) {
  service_.watch(fd_.get(), std::move(ready));
  const std::lock_guard lock(mutex_);
  want_write_ = false;
  flush_locked();
}

void Link::stop() {
  service_.unwatch(fd_.get());
}

void Link::send(Packet frame) {
  const std::lock_guard lock(mutex_);
  if (broken_ || finish_) return;  // the reader learns of the end
  queue_bytes_ += frame->size();
  queue_.push_back(std::move(frame));
  if (queue_bytes_ > kMaxQueueBytes) {  // a peer that takes part but does not read
    broken_ = true;
    queue_.clear();
    ::shutdown(fd_.get(), SHUT_RDWR);
    return;
  }
  flush_locked();
}

void Link::flush_locked() {
  while (!queue_.empty() && !broken_) {
    const std::string& first = *queue_.front();
    const ssize_t bytes = ::send(fd_.get(), first.data() + sent_of_first_,
                                 first.size() - sent_of_first_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && again(errno)) break;
    if (bytes < 0) {
      broken_ = true;
      queue_.clear();
      break;
    }
    sent_of_first_ += static_cast<size_t>(bytes);
    if (sent_of_first_ < first.size()) continue;
    queue_bytes_ -= first.size();
    sent_of_first_ = 0;
    queue_.pop_front();
  }
  if (queue_.empty() && finish_) ::shutdown(fd_.get(), SHUT_WR);
  if (want_write_ == !queue_.empty()) return;
  want_write_ = !queue_.empty();
  service_.want(fd_.get(), want_write_ ? Service::Want::read_write : Service::Want::read);
}

bool Link::receive() {
  {
    const std::lock_guard lock(mutex_);
    flush_locked();
  }
  char buffer[kReadBytes];
  for (int i = 0; i < kReadsPerTurn; i++) {
    const size_t room = std::min(reader_.room_bytes(), sizeof buffer);
    if (room == 0) return true;
    const ssize_t bytes = ::recv(fd_.get(), buffer, room, MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && again(errno)) return true;
    if (bytes <= 0) {
      ended_ = bytes == 0 ? "the connection was closed"
                          : "the connection broke: " + std::generic_category().message(errno);
      return false;
    }
    reader_.append({buffer, static_cast<size_t>(bytes)});
  }
  return true;
}

void Link::finish_sending() {
  const std::lock_guard lock(mutex_);
  finish_ = true;
  flush_locked();
}

bool Link::sent_all() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void Link::flush(int64_t ms) {
  const Deadline deadline = Deadline::after_ms(ms);
  while (!sent_all() && !deadline.passed()) {
    pollfd wait{fd_.get(), POLLOUT, 0};
    ::poll(&wait, 1, static_cast<int>(deadline.left_ms()));
    const std::lock_guard lock(mutex_);
    flush_locked();
  }
}

void set_control_options(int fd) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);  // best effort: not every kernel has all
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 40'000);
}

}  // namespace hcomm::comm
