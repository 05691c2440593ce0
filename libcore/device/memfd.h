// SPDX-License-Identifier: Apache-2.0
// Shared memory without a name: a sealed memfd and its mapping. What hcommMemAlloc's memory and the
// segments of transport/shm are made of. The descriptor is handed to peers over a socket, so
// nothing is ever left in a file system, whatever kills the process. Absent: bookkeeping
// (memory.h).
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/config.h"
#include "base/fd.h"

namespace hcomm {

// A shared mapping; unmapped at the end. The bytes are zero at first and sealed: they can neither
// shrink nor grow, so that nobody's access can fault.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  std::byte* release() { return std::exchange(base_, nullptr); }  // the caller unmaps

 private:
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
};

struct SharedPages {
  UniqueFd fd;
  Mapping mapping;  // at least the bytes that were asked for, whole pages
};

// Makes and maps `bytes` > 0. Pages are made at first touch, except with huge_pages `on`: then they
// are huge and reserved now. Throws Error(system) that tells what was wanted and what is available.
SharedPages make_shared_pages(std::string_view purpose, size_t bytes, Switch huge_pages);

// Maps all of a peer's memfd. Empty when it is not sealed against shrinking or cannot be mapped.
enum class Access { read, read_write };
Mapping map_shared_pages(int fd, Access access);

// Memory that can be had now without swapping (MemAvailable); 0: unknown.
size_t available_bytes();

}  // namespace hcomm
