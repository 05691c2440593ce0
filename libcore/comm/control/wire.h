// SPDX-License-Identifier: Apache-2.0
// What goes over a control connection: frames of {length, kind, body}, read incrementally from
// bytes that nobody trusts, and a Link that sends and receives them without blocking. Used by Hub
// (rank 0's end) and Control (a rank's end). Absent: what the frames mean.
//
// All numbers are little-endian. The length counts kind and body. Before a client has proved that
// it belongs to the job, its frames are limited to kMaxHelloBytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "comm/control/service.h"

namespace hcomm::comm {

inline constexpr uint32_t kMaxFrameBytes = 16 << 20;
inline constexpr uint32_t kMaxHelloBytes = 4096;

// What a frame says. The values are the protocol's.
enum class Kind : uint8_t {
  hello = 1,     // rank -> hub: who I am
  welcome,       // hub -> rank: accepted, here is my proof
  refused,       // hub -> rank: code, text; the connection ends
  ready,         // hub -> rank: all have joined, these are they
  post,          // rank -> hub: my part of an exchange
  gathered,      // hub -> rank: all parts
  not_gathered,  // hub -> rank: why not
  failure,       // both ways
  signature,     // rank -> hub: the call that I am stuck in
  question,      // rank -> hub: who has sent no signature?
  answer,        // hub -> rank
  goodbye,       // both ways: the end of the connection is no death
};

struct Frame {
  Kind kind{};
  std::string body;
};

class FrameReader {
 public:
  explicit FrameReader(uint32_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}
  void set_max(uint32_t bytes) { max_bytes_ = bytes; }
  void append(std::string_view bytes);
  // The next whole frame, nothing when more bytes are needed or the stream is broken.
  std::optional<Frame> next();
  // A length was 0 or over the limit: there is no way to find the next frame.
  bool broken() const { return broken_; }
  // How much more may be appended before next() is asked: bounds what a stranger can make us hold.
  size_t room_bytes() const {
    const size_t most = size_t{max_bytes_} + 4, pending = buffer_.size() - at_;
    return pending < most ? most - pending : 0;
  }

 private:
  uint32_t max_bytes_;
  std::string buffer_;
  size_t at_ = 0;
  bool broken_ = false;
};

class Encoder {
 public:
  explicit Encoder(Kind kind);
  Encoder& u8(uint8_t value);
  Encoder& u32(uint32_t value);
  Encoder& u64(uint64_t value);
  Encoder& raw(std::string_view bytes);
  Encoder& text(std::string_view bytes);  // with its length
  std::string take();                     // the whole frame

 private:
  std::string bytes_;
};

// Reads a body. Past its end, or with a length that is longer than the rest, it gives zeros and
// empty texts and is not fine().
class Decoder {
 public:
  explicit Decoder(std::string_view body) : rest_(body) {}
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  std::string_view raw(size_t bytes);
  std::string_view text() { return raw(u32()); }
  std::string_view rest() { return raw(rest_.size()); }
  bool fine() const { return fine_; }
  bool at_end() const { return fine_ && rest_.empty(); }

 private:
  uint64_t number(size_t bytes);

  std::string_view rest_;
  bool fine_ = true;
};

// Shared: one gathered frame goes to all members of a communicator, each at its own pace.
using Packet = std::shared_ptr<const std::string>;
Packet packet(Encoder& encoder);

// A connected socket that moves frames. send from any thread; the rest in the service thread, or
// before start.
class Link {
 public:
  Link(Service& service, UniqueFd fd, FrameReader reader);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  // Calls `ready` when there may be something to receive; at most until stop.
  void start(Service::Task ready);
  void stop();
  void send(Packet frame);
  // Reads what has come, at most about a MiB, and sends what waits. False: the connection is over
  // (ended() says why), though whole frames may still be there.
  bool receive();
  std::optional<Frame> next() { return reader_.next(); }
  FrameReader& reader() { return reader_; }
  const std::string& ended() const { return ended_; }

  void finish_sending();  // shutdown(write), after what waits was sent
  bool sent_all();        // nothing waits
  // Waits until nothing waits or `ms` are over. For the end of a connection, any thread.
  void flush(int64_t ms);
  int fd() const { return fd_.get(); }

 private:
  void flush_locked();

  Service& service_;
  UniqueFd fd_;
  FrameReader reader_;
  std::string ended_;
  std::mutex mutex_;  // what follows
  std::deque<Packet> queue_;
  size_t queue_bytes_ = 0;
  size_t sent_of_first_ = 0;
  bool want_write_ = false, broken_ = false, finish_ = false;
};

// Options of every control connection: no delay, and an end within 40 s where the peer's host is
// gone without a word. A stopped process is no such host: its kernel answers.
void set_control_options(int fd);

}  // namespace hcomm::comm
