// SPDX-License-Identifier: Apache-2.0
// The recorder's memory: what every rank leaves behind for tools (hcc-launch's report, later
// hcc-top and hcc-diag). Fixed layout, written by one rank, readable by anybody at any time, also
// after the rank has died: hcc-launch holds the memory (a memfd, HCOMM_RECORDER_FD). One area a
// rank of the job, of a fixed size; an area has a head, counters a peer, and a ring of operation
// records, one cache line each. Lock-free: a record's `serial` is 0 while the record is filled and
// is written last, so a reader that finds the same serial before and after has one whole record.
#pragma once

#include <atomic>
#include <cstdint>

namespace hcomm::trace {

inline constexpr uint32_t kMagic = 0x48435452;  // "HCTR"
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kRingRecords = 512;
inline constexpr uint32_t kLinks = 256;  // peers with counters of their own; others share the last

enum class RankState : uint32_t { none, starting, ready };
enum class OpState : uint8_t { none, running, done, failed };

// One operation of one communicator. 64 bytes.
struct alignas(64) OpRecord {
  std::atomic<uint64_t> serial;  // of the process, from 1; 0: not used yet, or being filled
  uint64_t sequence;             // of the communicator
  uint64_t begin_ticks, end_ticks;
  uint64_t count;                // elements, as the call has it
  uint32_t communicator;         // low bits of its id
  uint32_t plan;                 // low bits of the plan's hash
  uint32_t root;                 // or peer
  uint8_t collective, type, op;  // values of schedule::Collective, Type, Op
  std::atomic<OpState> state;
  uint64_t reserved;
};
static_assert(sizeof(OpRecord) == 64);

// What went to and came from a peer. Written by one thread at a time.
struct LinkCounters {
  std::atomic<uint64_t> sent_bytes, received_bytes;
};

struct alignas(64) RankArea {
  uint32_t magic, version;
  std::atomic<RankState> state;
  std::atomic<int32_t> pid;
  uint32_t rank, ranks;
  double ticks_per_ns;
  std::atomic<uint64_t> start_ticks;
  std::atomic<int64_t> start_wall_ns;
  char host[64];
  // What a wait of over a millisecond waits for; peer -1: not waiting.
  std::atomic<int32_t> waiting_peer;
  std::atomic<uint32_t> waiting_step;
  std::atomic<uint64_t> waiting_since_ticks;
  std::atomic<uint64_t> last_serial;  // of the newest record
  alignas(64) LinkCounters links[kLinks];
  alignas(64) OpRecord ring[kRingRecords];
};

// The area of rank r begins at r * kAreaBytes.
inline constexpr uint64_t kAreaBytes = (sizeof(RankArea) + 4095) / 4096 * 4096;

}  // namespace hcomm::trace
