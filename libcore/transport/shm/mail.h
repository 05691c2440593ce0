// SPDX-License-Identifier: Apache-2.0
// Letters between the ranks of a node: how the descriptor of a segment or of an allocation gets
// from its owner to a peer. A mailbox is an abstract datagram socket, so it has no name in a file
// system and dies with its process; the kernel vouches for who wrote (SO_PASSCRED), a letter
// without the communicator's token is dropped, and nothing is handed to or taken from another user.
// Within a process a pointer is enough. Owned by the endpoint of transport/shm, read in the service
// thread. Absent: payload, waiting, retries.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/reactor.h"

namespace hcomm::transport {

// The address of an abstract socket.
class SocketName {
 public:
  SocketName() = default;
  explicit SocketName(std::string_view name);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t bytes() const { return bytes_; }
  std::string_view text() const;

 private:
  friend class Mailbox;
  sockaddr_un address_{};
  socklen_t bytes_ = 0;
};

// A new non-blocking datagram socket that is bound to `name`. Throws Error(system).
UniqueFd bind_socket(const SocketName& name);

enum class Topic : uint32_t { ask_segment, segment, ask_memory, memory };

struct Letter {
  Topic topic = Topic::ask_segment;
  uint32_t from = 0;     // rank that wrote it
  uint64_t id = 0;       // of the allocation
  uint64_t pointer = 0;  // where it is, to a reader in the same process; 0 and no descriptor: no
  uint64_t bytes = 0;    // of what pointer points to
};

// A letter that came.
struct Mail {
  Letter letter;
  UniqueFd fd;
  SocketName sender;
  bool same_user = false, same_process = false;
};

class Mailbox {
 public:
  using Handler = std::function<void(Mail)>;
  // Throws Error(system).
  Mailbox(const uint64_t (&token)[2], Reactor& reactor, Handler handler);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox();

  const std::string& name() const { return name_; }
  // Sends with fd (-1: none). 0, or the errno: EAGAIN: later; ECONNREFUSED: nobody there. From any
  // thread.
  int send(const SocketName& to, const Letter& letter, int fd) const;

 private:
  void read_all();
  bool read_one();

  uint64_t token_[2];
  Reactor& reactor_;
  Handler handler_;
  std::string name_;
  UniqueFd fd_;
};

}  // namespace hcomm::transport
