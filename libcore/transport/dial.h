// SPDX-License-Identifier: Apache-2.0
// A connect to whichever address of a peer answers, as a state machine that never blocks. An
// address is begun when those before it have failed or have kept silent for a moment; then each is
// tried again and again by itself, with pauses that grow, until one is joined or the owner gives
// up: a late server is waited for, and a silent address never holds up another. Owned by a TCP
// channel that is not joined yet. Absent: the deadline, which is the owner's.
//
// A connection counts only when the peer has answered the greeting with kAccepted; then kCommitted
// is sent, on one connection only. So the peer never takes one that was given up.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "transport/socket.h"

namespace hcomm::transport {

inline constexpr char kAccepted = 'A', kCommitted = 'C';

class Dial {
 public:
  Dial(std::vector<SocketAddress> addresses, std::string greeting, size_t buffer_bytes);

  // Moves as far as it goes now. True: joined, take the socket.
  bool advance();
  UniqueFd take() { return std::move(joined_); }

  // What to wait for before `advance` can do more, and for how long at most.
  void interests(std::vector<pollfd>& descriptors) const;
  int64_t wait_ms() const;

  int64_t waited_ms() const { return (now_ns() - begin_ns_) / 1'000'000; }
  // EMFILE and the like, which no retry mends; 0: none.
  int hopeless() const { return hopeless_; }
  // Every address has refused: nothing there is slow, there is nobody.
  bool refused() const;
  std::string text() const;  // "10.0.0.1:4711: Connection refused, [::1]:4711: ..."

 private:
  enum class Phase : uint8_t { closed, connecting, greeted };
  struct Attempt {
    UniqueFd fd;
    Phase phase = Phase::closed;
    int error = 0;  // of the last try
    Deadline next;  // closed: when to try again; else when to give this try up
  };

  bool step(size_t index);
  void begin(size_t index);
  void greet(Attempt& attempt);
  bool hear(Attempt& attempt);
  void drop(size_t index, int error);

  std::vector<SocketAddress> addresses_;
  std::string greeting_;
  size_t buffer_bytes_;
  std::vector<Attempt> attempts_;  // by address
  size_t begun_ = 0;
  Deadline stagger_;  // before the next address is begun
  int hopeless_ = 0;
  int64_t begin_ns_;
  UniqueFd joined_;
};

}  // namespace hcomm::transport
