// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/buffers.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/terminal.h"
#include "hcc-bench/measure/memory.h"

namespace hcomm::bench {

namespace {

using enum Operation;

// Where the smaller of the two lies in place.
enum class Within : uint8_t { apart, same, send_in_recv, recv_in_send };

Within within(const Sweep& sweep, const Place& place) {
  const bool at_root = place.rank == place.root;
  if (!sweep.in_place) return Within::apart;
  switch (sweep.operation) {
    case all_gather:
    case all_gather_v:
      return Within::send_in_recv;
    case reduce_scatter:
    case reduce_scatter_v:
      return Within::recv_in_send;
    case gather:
    case gather_v:
      return at_root ? Within::send_in_recv : Within::apart;
    case scatter:
    case scatter_v:
      return at_root ? Within::recv_in_send : Within::apart;
    default:
      return Within::same;
  }
}

Capacity capacity_at(const Sweep& sweep, size_t bytes, const Place& place) {
  const size_t element = size_of(sweep.type);
  const Layout l = layout(sweep.operation, bytes, element, place);
  const size_t send = l.send * element, recv = l.recv * element;
  switch (within(sweep, place)) {
    case Within::apart:
      return {send, recv};
    case Within::recv_in_send:
      return {send, 0};
    case Within::send_in_recv:
      return {0, recv};
    case Within::same:
      return {0, std::max(send, recv)};
  }
  return {};
}

Capacity larger(Capacity a, Capacity b) {
  return {std::max(a.send, b.send), std::max(a.recv, b.recv)};
}

}  // namespace

Capacity capacity(const Sweep& sweep, size_t bytes, int rank, int ranks) {
  if (sweep.root >= 0) return capacity_at(sweep, bytes, {rank, ranks, sweep.root});
  const Capacity at_root = capacity_at(sweep, bytes, {rank, ranks, rank});
  if (ranks == 1) return at_root;
  return larger(at_root, capacity_at(sweep, bytes, {rank, ranks, (rank + 1) % ranks}));
}

Capacity capacity(std::span<const Sweep> sweeps, int rank, int ranks) {
  Capacity most{};
  for (const Sweep& sweep : sweeps)
    for (const size_t bytes : sweep.sizes) most = larger(most, capacity(sweep, bytes, rank, ranks));
  return most;
}

void fit_to_memory(World& world, std::vector<Sweep>& sweeps, TooLarge policy) {
  const double local = world.local_ranks();
  const double room = static_cast<double>(available_bytes()) * 0.95 - local * 16 * kMiB;
  const double share = -world.maximum(-room / local);  // the least over all hosts
  size_t largest = 0, refused = 0;
  for (Sweep& sweep : sweeps) {
    std::erase_if(sweep.sizes, [&](size_t bytes) {
      Capacity most{};
      for (int rank = 0; rank < world.ranks(); rank++)
        most = larger(most, capacity(sweep, bytes, rank, world.ranks()));
      const double need = static_cast<double>(most.send + most.recv);
      if (need > share)
        refused = std::max(refused, bytes);
      else
        largest = std::max(largest, bytes);
      return need > share;
    });
  }
  if (refused == 0) return;
  const size_t fits = share > 0 ? static_cast<size_t>(share / 2) / kMiB * kMiB : 0;
  if (policy == TooLarge::refuse || largest == 0)
    fail(Code::invalid_argument,
         "{} does not fit: {:.1f} GiB are free for {} ranks of this host, two buffers each; {} "
         "fits (or --fit to leave out what does not)",
         size_text(refused), room / static_cast<double>(kGiB), world.local_ranks(),
         size_text(fits));
  if (world.rank() == 0)
    cli::complain(
        fmt::format("hcc-bench: memory holds sizes up to {}: larger ones are left out (--fit)",
                    size_text(largest)));
}

Buffers::Buffers(Capacity capacity, std::string_view memory)
    : capacity_{capacity.send + kGuardBytes, capacity.recv + kGuardBytes},
      shared_(memory == "hcomm") {
  send_ = allocate(capacity_.send);
  recv_ = allocate(capacity_.recv);
}

Buffers::~Buffers() {
  release(send_, capacity_.send);
  release(recv_, capacity_.recv);
}

void* Buffers::allocate(size_t bytes) const {
  void* memory = nullptr;
  if (shared_) {
    require(hcommMemAlloc(&memory, bytes, nullptr), nullptr, "hcommMemAlloc");
    return memory;
  }
  memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_system(errno, "map a buffer of {}", size_text(bytes));
  return memory;
}

void Buffers::release(void* memory, size_t bytes) const {
  if (shared_)
    hcommMemFree(memory);
  else
    munmap(memory, bytes);
}

Task Buffers::task(const Sweep& sweep, size_t bytes, const Place& place) const {
  const size_t element = size_of(sweep.type);
  Task task{sweep.operation, place, layout(sweep.operation, bytes, element, place),
            send_,           recv_, sweep.in_place};
  const size_t offset = task.layout.own * element;
  switch (within(sweep, place)) {
    case Within::apart:
      break;
    case Within::same:
      task.send = recv_;
      break;
    case Within::send_in_recv:
      task.send = static_cast<char*>(recv_) + offset;
      break;
    case Within::recv_in_send:
      task.recv = static_cast<char*>(send_) + offset;
      break;
  }
  return task;
}

}  // namespace hcomm::bench
