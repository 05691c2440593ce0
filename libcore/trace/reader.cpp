// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <cstring>

#include "base/clock.h"

namespace hcomm::trace {

namespace {

// nullopt: the ring went round meanwhile, and the record is, or was while we copied, another one.
template <typename Micros>
std::optional<OpSnapshot> read_record(const OpRecord& record, uint64_t serial, Micros micros) {
  if (record.serial.load(std::memory_order_acquire) != serial) return std::nullopt;
  OpSnapshot copy{serial,
                  record.sequence,
                  record.count,
                  record.communicator,
                  record.plan,
                  record.root,
                  record.collective,
                  record.type,
                  record.op,
                  OpState::none,
                  micros(record.begin_ticks),
                  0};
  copy.state = record.state.load(std::memory_order_acquire);
  if (copy.state == OpState::done || copy.state == OpState::failed)
    copy.end_us = micros(record.end_ticks);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (record.serial.load(std::memory_order_relaxed) != serial) return std::nullopt;
  return copy;
}

}  // namespace

std::optional<RankSnapshot> read_rank(const void* memory, size_t newest) {
  const auto& area = *static_cast<const RankArea*>(memory);
  const RankState state = area.state.load(std::memory_order_acquire);
  if (state == RankState::none || area.magic != kMagic || area.version != kVersion)
    return std::nullopt;
  RankSnapshot rank;
  rank.state = state;
  rank.pid = area.pid.load(std::memory_order_relaxed);
  rank.rank = area.rank;
  rank.ranks = area.ranks;
  rank.host.assign(area.host, strnlen(area.host, sizeof area.host));
  const double per_us = area.ticks_per_ns * 1000;
  const uint64_t start = area.start_ticks.load(std::memory_order_relaxed);
  const auto micros = [&](uint64_t at) {
    return at > start ? static_cast<double>(at - start) / per_us : 0;
  };
  rank.waiting_peer = area.waiting_peer.load(std::memory_order_relaxed);
  if (rank.waiting_peer >= 0)
    rank.waiting_us =
        micros(ticks()) - micros(area.waiting_since_ticks.load(std::memory_order_relaxed));

  for (const LinkCounters& link : area.links)
    rank.moved_bytes += link.sent_bytes.load(std::memory_order_relaxed) +
                        link.received_bytes.load(std::memory_order_relaxed);

  const uint64_t last = area.last_serial.load(std::memory_order_acquire);
  for (uint64_t serial = last; serial > 0 && rank.last.size() < newest; serial--) {
    if (last - serial >= kRingRecords) break;
    const OpRecord& record = area.ring[serial % kRingRecords];
    if (const auto copy = read_record(record, serial, micros)) rank.last.push_back(*copy);
  }
  return rank;
}

}  // namespace hcomm::trace
