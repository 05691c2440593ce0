// SPDX-License-Identifier: Apache-2.0
// Reading the memory of a peer where it lies: mappings of what it allocated with hcommMemAlloc, and
// process_vm_readv for any other buffer. Owned by the endpoint of transport/shm; used by its
// channels in the thread that drives them, while mappings arrive in the service thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device/memfd.h"
#include "transport/shm/mail.h"
#include "transport/shm/node_memory.h"

namespace hcomm::transport {

// An allocation of a peer: mapped here, or (in one process) the owner's own mapping.
struct PeerMap {
  Mapping mapping;
  const std::byte* base = nullptr;
  size_t bytes = 0;
};

// Shared pointers, because a channel goes on reading a mapping that the cache has dropped.
using PeerMapPointer = std::shared_ptr<const PeerMap>;

class PeerMaps {
 public:
  // Asks the owner for an allocation: 0, EAGAIN (asked again later) or another errno.
  using Ask = std::function<int(uint32_t member, uint64_t id)>;
  explicit PeerMaps(Ask ask) : ask_(std::move(ask)) {}

  enum class State { waiting, ready, refused };
  // Driving thread. The first call asks; later ones find. Never blocks.
  State find(uint32_t member, uint64_t id, PeerMapPointer& found);
  // Driving thread: whether an answer is awaited, perhaps to be asked for again.
  bool waiting() const { return waiting_ != 0; }
  // Driving thread: takes what has arrived; true when there was something.
  bool take_arrivals();

  // Service thread: the owner's answer.
  void deliver(uint32_t member, Mail mail);

 private:
  static constexpr size_t kMaxMaps = 256;
  static constexpr int64_t kAskEveryNs = 100'000'000;  // an answer may find our mailbox full
  using Key = std::pair<uint32_t, uint64_t>;
  struct Entry {
    State state = State::waiting;
    int64_t asked_ns = 0;
    PeerMapPointer map;
    uint64_t used = 0;
  };
  void ask(const Key& key, Entry& entry);
  void settle(Entry& entry, PeerMapPointer map);
  void make_room();

  Ask ask_;
  std::map<Key, Entry> entries_;
  uint64_t uses_ = 0;
  size_t waiting_ = 0;  // entries in that state

  std::atomic<bool> arrived_{false};
  std::mutex mutex_;
  std::vector<std::pair<Key, PeerMapPointer>> inbox_;  // null: refused
};

// Reads the memory of another process: the number of bytes, less than asked when only a part could
// be read, 0 when none could.
size_t pull_bytes(int pid, uint64_t address, std::byte* to, size_t bytes);
// Whether this process may read the other's memory: reads the value that its head names.
bool can_pull(int pid, const AreaHead& head);

}  // namespace hcomm::transport
