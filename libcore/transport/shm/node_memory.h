// SPDX-License-Identifier: Apache-2.0
// NodeMemory: the segment of memory that the ranks of a communicator on one node share, and how it
// is laid out. One memfd a group, made by its first member, an area a member; each area is written
// by its member only and read by all. Pages are made at first touch, and what belongs to window
// slots that are not used is never touched. Used by transport/shm and its channels. Absent: how the
// descriptor travels (mail.h).
//
//   segment   head | area of member 0 | area of member 1 | ...
//   area      head | slot 0: progress, lines of every peer | slot 0: rings | slot 1: ... | ...
//
// A channel from member a to member b in slot s is made of: lines (a, s, b) and ring (a, s, b),
// which a writes, and progress (b, s, a), which b writes. Ring (a, s, a) is for what a sends to
// several members at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/fd.h"
#include "device/memfd.h"
#include "transport/transport.h"

namespace hcomm::transport {

inline constexpr uint32_t kLines = 32;        // of a channel and direction
inline constexpr uint32_t kInlineBytes = 40;  // of a line

// How the bytes of a line travel.
enum class Way : uint8_t { in_line, bounce, shared, mapped, pulled };

// Where the bytes are that do not fit into the line.
struct Fragment {
  uint64_t at = 0;     // in the ring (bounce, shared), in the allocation; pulled: the address
  uint64_t bytes = 0;
  uint64_t id = 0;  // of the allocation
};

// One message, or a fragment of one. `turn` is written last and tells the lines of successive laps
// apart, so a short message crosses to the peer in this one cache line.
struct alignas(kCacheLine) Line {
  std::byte payload[kInlineBytes];  // the bytes, or a Fragment
  uint64_t bytes;                   // of the whole message
  Label label;
  Way way;
  uint8_t in_line_bytes;
  uint16_t reserved;
  std::atomic<uint32_t> turn;
};
static_assert(sizeof(Line) == kCacheLine && sizeof(Fragment) <= kInlineBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// How far a reader is. A line that its reader can't read in place (no mapping, no permission) is
// passed with `refused` == its number + 1; the writer then sends the bytes from refused_at on
// again.
struct alignas(kCacheLine) Progress {
  std::atomic<uint64_t> consumed;
  std::atomic<uint64_t> refused;
  std::atomic<uint64_t> refused_at;
};
static_assert(sizeof(Progress) == kCacheLine);

enum class Pull : uint8_t { unknown, possible, impossible };

// The first page of an area.
struct AreaHead {
  alignas(kCacheLine) uint64_t probe_address;  // of probe_value in the member's own memory
  uint64_t probe_value[2];
  alignas(kCacheLine) std::atomic<uint32_t> asleep;  // 1: ring my doorbell when you move something
};  // followed by a Pull for each member: whether this member may read the other's memory

struct Layout {
  uint32_t members = 0;
  uint64_t ring_bytes = 0;  // of a channel and direction; a multiple of 64

  // ring_bytes by the number of members, or by HCOMM_RING (of a pair).
  static Layout make(uint32_t members, const Config& config);
  uint64_t area_head_bytes() const;
  uint64_t control_bytes() const;  // of a slot: progress and lines
  uint64_t rings_bytes() const;    // of a slot
  uint64_t slot_bytes() const { return control_bytes() + rings_bytes(); }
  uint64_t area_bytes() const { return area_head_bytes() + kMaxSlots * slot_bytes(); }
  uint64_t segment_bytes() const;
};

class NodeMemory {
 public:
  // Makes the segment of a group. Throws Error(system).
  static std::shared_ptr<NodeMemory> make(const Layout& layout, const uint64_t (&token)[2],
                                          Switch huge_pages);
  // Joins it: maps fd and looks for the token inside, the proof that memory is truly shared. Throws
  // Error(unavailable).
  static std::shared_ptr<NodeMemory> join(UniqueFd fd, uint32_t members,
                                          const uint64_t (&token)[2]);

  const Layout& layout() const { return layout_; }
  int fd() const { return fd_.get(); }

  AreaHead& head(uint32_t member) const;
  std::atomic<Pull>& pull(uint32_t reader, uint32_t owner) const;
  Progress& progress(uint32_t member, uint32_t slot, uint32_t peer) const;
  Line* lines(uint32_t member, uint32_t slot, uint32_t peer) const;
  std::byte* ring(uint32_t member, uint32_t slot, uint32_t peer) const;

 private:
  NodeMemory(UniqueFd fd, Mapping mapping, const Layout& layout)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), layout_(layout) {}
  std::byte* area(uint32_t member) const;
  std::byte* slot(uint32_t member, uint32_t slot) const;

  UniqueFd fd_;
  Mapping mapping_;
  Layout layout_;
};

}  // namespace hcomm::transport
