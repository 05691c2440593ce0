// SPDX-License-Identifier: Apache-2.0
// The listening side of a TCP endpoint: takes connections, reads who is there, and keeps each
// authenticated socket until the engine asks for it. Owned by the endpoint. All of the handshake
// runs in the service thread, which waits for one descriptor (an epoll set of the listener, the
// timer and the connections that have not said who they are); `take`, `arrivals`, `quiet` and
// `error` are the engine's. Absent: payload, which no callback ever reads.
//
//   accepted --48 bytes that fit--> answered kAccepted --kCommitted--> arrived --take--> a channel
//       \--- other bytes, the end, 2 s, or 64 newer ones: closed, and the next is served
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/reactor.h"
#include "transport/transport.h"

namespace hcomm::transport {

// Opens each connection, lower rank to higher.
struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = 1;
  uint32_t from = 0, to = 0, slot = 0;
  uint64_t communicator = 0;
  uint64_t token[2] = {0, 0};

  static constexpr uint64_t kMagic = 0x314d4d4f43482eff;  // no text protocol begins with 0xff
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(sizeof(Hello) == 48);

class TcpAcceptor {
 public:
  TcpAcceptor(UniqueFd listener, const Place& place);
  TcpAcceptor(const TcpAcceptor&) = delete;
  TcpAcceptor& operator=(const TcpAcceptor&) = delete;
  ~TcpAcceptor();

  // The socket that `from` opened for slot, empty: not there yet.
  UniqueFd take(uint32_t from, uint32_t slot);
  // Changes when something has arrived or gone wrong; cheap.
  uint32_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }
  // Readable from an arrival until `quiet`.
  int doorbell() const { return doorbell_.get(); }
  void quiet();
  // Why no connection can be accepted, "" when all is well.
  std::string error();

 private:
  struct Pending {
    uint64_t serial;
    UniqueFd fd;
    int64_t since_ns;
    size_t got = 0;  // bytes of hello
    Hello hello;
    bool answered = false;
  };
  struct Arrival {
    uint32_t from, slot;
    UniqueFd fd;
  };
  enum class Next : uint8_t { wait, drop, arrive };

  void ready();
  void accept_all();
  void admit(UniqueFd fd);
  void advance(uint64_t serial);
  Next step(Pending& pending);
  Next check(Pending& pending);
  void arrive(Pending& pending);
  void tick();
  void pause(int error);
  void set_timer();
  void ring();
  size_t strangers() const;

  const Place place_;
  Reactor& reactor_;
  UniqueFd listener_, epoll_, timer_, doorbell_;
  // the service thread's own
  std::vector<Pending> pending_;
  uint64_t serial_ = 0;
  bool paused_ = false, timed_ = false;
  int64_t starved_since_ns_ = 0;  // 0: descriptors suffice
  // handed over
  std::atomic<uint32_t> arrivals_{0};
  std::mutex mutex_;
  std::vector<Arrival> arrived_;
  std::string error_;
};

}  // namespace hcomm::transport
