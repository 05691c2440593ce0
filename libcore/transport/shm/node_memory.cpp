// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/node_memory.h"

#include <algorithm>
#include <new>

namespace hcomm::transport {

namespace {

constexpr uint64_t kMagic = 0x3130'6d68'736d'6368;  // "hcmshm01"
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMinRingBytes = 4 * kCacheLine;
constexpr uint64_t kMaxRingBytes = 1 * kGiB;

struct SegmentHead {
  uint64_t magic;
  uint64_t token[2];
  uint64_t ring_bytes;
  uint32_t members;
};

}  // namespace

Layout Layout::make(uint32_t members, const Config& config) {
  const uint64_t channels = uint64_t{kMaxSlots} * std::max(members - 1, 1u);
  uint64_t ring_bytes = 0;
  if (config.ring_bytes != 0) {
    ring_bytes = std::clamp(config.ring_bytes / kMaxSlots, kMinRingBytes, kMaxRingBytes);
  } else {
    // All slots in use at once by 8 members stay under 13 MiB a member, by 64 under 33 MiB.
    const uint64_t budget = members <= 8 ? 12 * kMiB : 32 * kMiB;
    ring_bytes = std::clamp(budget / channels, 16 * kKiB, 512 * kKiB);
  }
  return {members, round_up(ring_bytes, kCacheLine)};
}

uint64_t Layout::area_head_bytes() const {
  return round_up(sizeof(AreaHead) + members * sizeof(std::atomic<Pull>), kPage);
}

uint64_t Layout::control_bytes() const {
  return round_up(members * (sizeof(Progress) + kLines * sizeof(Line)), kPage);
}

uint64_t Layout::rings_bytes() const {
  return members * round_up(ring_bytes, kPage);
}

uint64_t Layout::segment_bytes() const {
  return kPage + members * area_bytes();
}

std::shared_ptr<NodeMemory> NodeMemory::make(const Layout& layout, const uint64_t (&token)[2],
                                             Switch huge_pages) {
  SharedPages pages =
      make_shared_pages("shared memory between ranks", layout.segment_bytes(), huge_pages);
  std::shared_ptr<NodeMemory> memory(
      new NodeMemory(std::move(pages.fd), std::move(pages.mapping), layout));
  new (memory->mapping_.base())
      SegmentHead{kMagic, {token[0], token[1]}, layout.ring_bytes, layout.members};
  return memory;
}

std::shared_ptr<NodeMemory> NodeMemory::join(UniqueFd fd, uint32_t members,
                                             const uint64_t (&token)[2]) {
  Mapping mapping = map_shared_pages(fd.get(), Access::read_write);
  if (mapping.bytes() < kPage)
    fail(Code::unavailable, "shared memory: the segment of this node cannot be mapped");
  const SegmentHead head = *reinterpret_cast<const SegmentHead*>(mapping.base());
  const Layout layout{head.members, head.ring_bytes};
  const bool known = head.magic == kMagic && head.token[0] == token[0] &&
                     head.token[1] == token[1] && head.members == members &&
                     head.ring_bytes % kCacheLine == 0 && head.ring_bytes >= kMinRingBytes &&
                     head.ring_bytes <= kMaxRingBytes;
  if (!known || layout.segment_bytes() > mapping.bytes())
    fail(Code::unavailable, "shared memory: the segment that was handed over is not ours");
  return std::shared_ptr<NodeMemory>(new NodeMemory(std::move(fd), std::move(mapping), layout));
}

std::byte* NodeMemory::area(uint32_t member) const {
  return mapping_.base() + kPage + member * layout_.area_bytes();
}

std::byte* NodeMemory::slot(uint32_t member, uint32_t slot) const {
  return area(member) + layout_.area_head_bytes() + slot * layout_.slot_bytes();
}

AreaHead& NodeMemory::head(uint32_t member) const {
  return *reinterpret_cast<AreaHead*>(area(member));
}

std::atomic<Pull>& NodeMemory::pull(uint32_t reader, uint32_t owner) const {
  return reinterpret_cast<std::atomic<Pull>*>(area(reader) + sizeof(AreaHead))[owner];
}

Progress& NodeMemory::progress(uint32_t member, uint32_t slot_, uint32_t peer) const {
  return reinterpret_cast<Progress*>(slot(member, slot_))[peer];
}

Line* NodeMemory::lines(uint32_t member, uint32_t slot_, uint32_t peer) const {
  std::byte* first = slot(member, slot_) + layout_.members * sizeof(Progress);
  return reinterpret_cast<Line*>(first) + peer * kLines;
}

std::byte* NodeMemory::ring(uint32_t member, uint32_t slot_, uint32_t peer) const {
  return slot(member, slot_) + layout_.control_bytes() + peer * round_up(layout_.ring_bytes, kPage);
}

}  // namespace hcomm::transport
