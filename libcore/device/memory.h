// SPDX-License-Identifier: Apache-2.0
// Host memory that peers on the node can map: what hcommMemAlloc gives out. Each allocation is a
// memfd of its own; nothing has a name in a file system, so nothing is left behind. Owned by the
// process's Runtime; used by api (allocate, free), engine (find, once a call) and transport/shm
// (descriptor).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/config.h"

namespace hcomm {

struct Exported {
  uint64_t id = 0;      // unique in this process, never reused
  uint64_t offset = 0;  // of the asked address in it
  uint64_t bytes = 0;   // of the whole allocation
};

class SharedMemory {
 public:
  explicit SharedMemory(Switch huge_pages) : huge_pages_(huge_pages) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // bytes > 0, page aligned, zero. Throws Error(system) with wanted and available bytes.
  void* allocate(size_t bytes);
  // False: not (any more) a pointer that allocate returned.
  bool free(void* pointer);
  // The allocation that holds all of [pointer, pointer + bytes). Cheap when there is none at all.
  std::optional<Exported> find(const void* pointer, size_t bytes) const {
    if (count_.load(std::memory_order_acquire) == 0) return std::nullopt;
    return find_slow(pointer, bytes);
  }
  // A duplicate (close-on-exec) of the memfd of id for a peer, -1: unknown (freed).
  int descriptor(uint64_t id) const;
  // Where id is mapped in this process (ranks of one process need no second mapping), else null.
  void* address(uint64_t id) const;

 private:
  struct Allocation {
    uint64_t id;
    std::byte* base;
    size_t bytes, mapped_bytes;
    int fd;
  };
  std::optional<Exported> find_slow(const void* pointer, size_t bytes) const;

  Switch huge_pages_;
  mutable std::mutex mutex_;
  std::vector<Allocation> allocations_;  // sorted by base
  std::atomic<size_t> count_{0};
  uint64_t next_id_ = 1;
};

}  // namespace hcomm
