// SPDX-License-Identifier: Apache-2.0
#include "comm/calibrate.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/thread.h"
#include "comm/text.h"
#include "datatype/kernels.h"

namespace hcomm::comm {

namespace {

constexpr size_t kLarge = 256 * kKiB;
constexpr int kSmallRounds = 64, kLargeRounds = 4;
// A slot that no operation uses: what a measurement that gave up leaves there is read by nobody.
constexpr uint32_t kSlot = transport::kMaxSlots - 1;
constexpr int64_t kPatience_ns = 50'000'000;  // of one measurement

// One pair's turn: messages there and back. False when it took too long or failed: the nominal
// numbers serve.
class Exchange {
 public:
  Exchange(transport::Channel& channel, bool crowded)
      : channel_(channel), crowded_(crowded), end_ns_(now_ns() + kPatience_ns) {}

  bool send(std::byte* data, size_t bytes) {
    const transport::Segment segment{data, bytes};
    transport::Outgoing out{.label = kLabel, .segments = &segment, .segment_count = 1,
                            .bytes = bytes};
    return until([&] { return channel_.send(out).ok(); }, [&] { return out.complete; });
  }
  bool receive(std::byte* data, size_t bytes) {
    const transport::Segment segment{data, bytes};
    transport::Incoming in{.label = kLabel, .bytes = bytes};
    return until([&] { return channel_.receive(in, {&segment, 1}).ok(); },
                 [&] { return in.complete(); });
  }

 private:
  static constexpr transport::Label kLabel{0xffffffff, 0x63616c69};

  template <typename Move, typename Done>
  bool until(Move move, Done done) {
    for (uint32_t round = 1;; round++) {
      if (!move()) return false;
      if (done()) return true;
      if (crowded_ || round % 256 == 0) sched_yield();
      else pause_core();
      if (round % 64 == 0 && now_ns() > end_ns_) return false;
    }
  }

  transport::Channel& channel_;
  bool crowded_;
  int64_t end_ns_;
};

// Ping-pong; `first` sends first. Microseconds one way for a small message, and per byte.
schedule::Link measure_pair(transport::Channel& channel, bool crowded, bool first,
                            schedule::Link nominal) {
  std::vector<std::byte> buffer(kLarge);
  Exchange exchange(channel, crowded);
  const auto rounds = [&](size_t bytes, int count) {
    double best = 1e9;
    for (int i = 0; i < count; i++) {
      const int64_t start = now_ns();
      const bool fine = first ? exchange.send(buffer.data(), bytes) &&
                                    exchange.receive(buffer.data(), bytes)
                              : exchange.receive(buffer.data(), bytes) &&
                                    exchange.send(buffer.data(), bytes);
      if (!fine) return -1.0;
      best = std::min(best, static_cast<double>(now_ns() - start) / 2000);
    }
    return best;
  };
  const double small_us = rounds(8, kSmallRounds);
  const double large_us = small_us < 0 ? -1 : rounds(kLarge, kLargeRounds);
  if (large_us < 0) return nominal;
  return {small_us, std::max(large_us - small_us, 0.01) / static_cast<double>(kLarge)};
}

void measure_kernels(schedule::Machine& machine) {
  std::vector<float> a(kLarge / 4, 1.0f), b(kLarge / 4, 2.0f), to(kLarge / 4);
  double copy_us = 1e9, reduce_us = 1e9;
  for (int i = 0; i < 4; i++) {
    const int64_t start = now_ns();
    copy_bytes(to.data(), a.data(), kLarge);
    const int64_t middle = now_ns();
    reduce2(Type::float32, Op::sum, to.data(), a.data(), b.data(), kLarge / 4);
    copy_us = std::min(copy_us, static_cast<double>(middle - start) / 1000);
    reduce_us = std::min(reduce_us, static_cast<double>(now_ns() - middle) / 1000);
  }
  machine.copy_us_per_byte = copy_us / static_cast<double>(kLarge);
  machine.reduce_us_per_byte = reduce_us / static_cast<double>(kLarge);
}

schedule::Link nominal_of(const transport::Reach& reach) {
  return {reach.latency_us, reach.bytes_per_us > 0 ? 1 / reach.bytes_per_us : 1e-3};
}

void add_pair(Fields& fields, std::string_view what, double first, double second) {
  fields.add(what);
  fields.add_number(std::bit_cast<uint64_t>(first));
  fields.add_number(std::bit_cast<uint64_t>(second));
}

}  // namespace

void calibrate(schedule::Machine& machine, Links& links, const CalibrationPlace& place) {
  const auto exchange = [&](std::string_view mine) {
    return place.control->exchange(place.circle, "measurements", mine, place.deadline);
  };
  const uint32_t rank = place.circle.index;
  // By which transport each rank is joined to every other, "" to itself; row 0 picks the pairs.
  Fields mine;
  for (uint32_t peer = 0; peer < machine.ranks; peer++)
    mine.add(peer == rank ? "" : links.transport_of(peer));
  const std::vector<std::string> rows = exchange(mine.text());
  std::map<std::string, uint32_t> partner;  // of rank 0, by transport
  const std::vector<std::string> row0 = Fields::split(rows[0]);
  for (uint32_t peer = 1; peer < machine.ranks; peer++) partner.insert({row0[peer], peer});

  Fields numbers;
  for (const auto& [transport, peer] : partner) {
    if (rank != 0 && rank != peer) continue;
    const uint32_t other = rank == 0 ? peer : 0;
    const schedule::Link link = measure_pair(*links.channel(other, kSlot), place.crowded,
                                             rank == 0, nominal_of(links.reach(other)));
    add_pair(numbers, transport, link.latency_us, link.us_per_byte);
  }
  if (rank == 0) measure_kernels(machine);
  add_pair(numbers, "kernels", machine.copy_us_per_byte, machine.reduce_us_per_byte);

  const std::vector<std::string> told = Fields::split(exchange(numbers.text())[0]);
  std::map<std::string, schedule::Link> by_transport;
  for (size_t i = 0; i + 2 < told.size(); i += 3)
    by_transport[told[i]] = {std::bit_cast<double>(Fields::number(told[i + 1])),
                             std::bit_cast<double>(Fields::number(told[i + 2]))};
  machine.copy_us_per_byte = by_transport["kernels"].latency_us;
  machine.reduce_us_per_byte = by_transport["kernels"].us_per_byte;
  machine.links.assign(size_t{machine.ranks} * machine.ranks, {});
  for (uint32_t from = 0; from < machine.ranks; from++) {
    const std::vector<std::string> row = Fields::split(rows[from]);
    for (uint32_t to = 0; to < machine.ranks; to++) {
      const auto known = by_transport.find(row[to]);
      if (from != to)
        machine.links[size_t{from} * machine.ranks + to] =
            known != by_transport.end() ? known->second : schedule::Link{50, 1e-3};
    }
  }
}

}  // namespace hcomm::comm
