// SPDX-License-Identifier: Apache-2.0
#include "device/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/bytes.h"
#include "base/error.h"
#include "device/memfd.h"

namespace hcomm {

namespace {

// Gives the pages back at once: peers may keep their mappings of it for a while, which then cost
// them nothing but addresses.
void drop(int fd, std::byte* base, size_t bytes) {
  ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  ::munmap(base, bytes);
  ::close(fd);
}

}  // namespace

SharedMemory::~SharedMemory() {
  for (const Allocation& each : allocations_) drop(each.fd, each.base, each.mapped_bytes);
}

void* SharedMemory::allocate(size_t bytes) {
  if (bytes == 0) fail(Code::invalid_argument, "allocate shared memory: 0 bytes asked for");
  // Pages come at first touch: what can never be had must be refused now, or it kills later.
  if (const size_t available = available_bytes(); available != 0 && bytes > available)
    fail(Code::system, "allocate shared memory: wanted {}, available {}", size_text(bytes),
         size_text(available));
  SharedPages pages = make_shared_pages("allocate shared memory", bytes, huge_pages_);
  const std::lock_guard lock(mutex_);
  const auto at = std::upper_bound(
      allocations_.begin(), allocations_.end(), pages.mapping.base(),
      [](const std::byte* base, const Allocation& a) { return std::less<>()(base, a.base); });
  const size_t mapped_bytes = pages.mapping.bytes();
  const auto made = allocations_.insert(
      at, {next_id_, pages.mapping.base(), bytes, mapped_bytes, pages.fd.get()});
  pages.fd.release();
  pages.mapping.release();
  next_id_++;
  count_.store(allocations_.size(), std::memory_order_release);
  return made->base;
}

bool SharedMemory::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(allocations_.begin(), allocations_.end(),
                               [&](const Allocation& a) { return a.base == pointer; });
  if (at == allocations_.end()) return false;
  drop(at->fd, at->base, at->mapped_bytes);
  allocations_.erase(at);
  count_.store(allocations_.size(), std::memory_order_release);
  return true;
}

std::optional<Exported> SharedMemory::find_slow(const void* pointer, size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto after = std::upper_bound(
      allocations_.begin(), allocations_.end(), first,
      [](const std::byte* p, const Allocation& a) { return std::less<>()(p, a.base); });
  if (after == allocations_.begin()) return std::nullopt;
  const Allocation& found = *std::prev(after);
  const auto offset = static_cast<size_t>(first - found.base);
  if (offset > found.bytes || bytes > found.bytes - offset) return std::nullopt;
  return Exported{found.id, offset, found.bytes};
}

int SharedMemory::descriptor(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const Allocation& each : allocations_)
    if (each.id == id) return ::fcntl(each.fd, F_DUPFD_CLOEXEC, 0);
  return -1;
}

void* SharedMemory::address(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const Allocation& each : allocations_)
    if (each.id == id) return each.base;
  return nullptr;
}

}  // namespace hcomm
