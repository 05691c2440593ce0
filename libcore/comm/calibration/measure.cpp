// SPDX-License-Identifier: Apache-2.0
#include "comm/calibration/measure.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread.h"
#include "datatype/kernels.h"

namespace hcomm::comm {

namespace {

constexpr size_t kSmall = 8, kLarge = 256 * kKiB;
// A message that costs a processor less is a step as any other: it was written to shared memory.
constexpr double kLeastOverhead_us = 0.5;
constexpr std::byte kAgain{1}, kLast{0};  // the first byte of a message
// Of who answers, from the start of all: rank 0 comes to each of its partners in turn.
constexpr int64_t kPatience_ns = 200'000'000;

// Messages there and back. False when it took too long or failed.
class Exchange {
 public:
  Exchange(const PairEnd& end, int64_t end_ns) : end_(end), end_ns_(end_ns) {}

  bool send(std::byte* data, size_t bytes) {
    const transport::Segment segment{data, bytes};
    transport::Outgoing out{
        .label = kLabel, .segments = &segment, .segment_count = 1, .bytes = bytes};
    return until([&] { return end_.channel.send(out).ok(); }, [&] { return out.complete; });
  }
  bool receive(std::byte* data, size_t bytes) {
    const transport::Segment segment{data, bytes};
    transport::Incoming in{.label = kLabel, .bytes = bytes};
    return until(
        [&] {
          return end_.channel.receive(in, {&segment, 1}).ok();
        },
        [&] { return in.complete(); });
  }

 private:
  static constexpr transport::Label kLabel{0xffffffff, 0x63616c69};

  template <typename Move, typename Done>
  bool until(Move move, Done done) {
    for (uint32_t round = 1;; round++) {
      if (!move()) return false;
      if (done()) return true;
      if (end_.crowded || round % 256 == 0)
        sched_yield();
      else
        pause_core();
      if (round % 64 == 0 && now_ns() > end_ns_) return false;
    }
  }

  const PairEnd& end_;
  int64_t end_ns_;
};

double us_between(int64_t start_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - start_ns) / 1000;
}

struct Best {
  double round_us = -1, send_us = -1;  // of the whole way, of the sender's part; negative: not
};

// The least times of a round trip.
Best best_of(Exchange& exchange, std::vector<std::byte>& buffer, size_t bytes, int64_t rounds,
             int64_t until_ns) {
  Best best;
  const auto least = [](double so_far, double us) {
    return so_far < 0 ? us : std::min(so_far, us);
  };
  for (int64_t i = 1;; i++) {
    const int64_t start_ns = now_ns();
    const bool last = i >= rounds || start_ns >= until_ns;
    buffer[0] = last ? kLast : kAgain;
    if (!exchange.send(buffer.data(), bytes)) return {};
    const int64_t sent_ns = now_ns();
    if (!exchange.receive(buffer.data(), bytes)) return {};
    best.round_us = least(best.round_us, us_between(start_ns, now_ns()));
    best.send_us = least(best.send_us, us_between(start_ns, sent_ns));
    if (last) return best;
  }
}

bool within(double value, double least, double most) {
  return value >= least && value <= most;
}

}  // namespace

std::optional<schedule::Link> measure_pair(const PairEnd& end, const Effort& effort) {
  const int64_t begin_ns = now_ns();
  Exchange exchange(end, std::min(begin_ns + 2 * effort.part_ns, end.start_ns + kPatience_ns));
  std::vector<std::byte> buffer(kLarge);
  const Best small =
      best_of(exchange, buffer, kSmall, effort.small_rounds, begin_ns + effort.part_ns);
  if (small.round_us < 0) return std::nullopt;
  const Best large =
      best_of(exchange, buffer, kLarge, effort.large_rounds, now_ns() + effort.part_ns / 2);
  if (large.round_us < 0) return std::nullopt;
  const double small_us = small.round_us / 2, large_us = large.round_us / 2;
  // Who receives pays the same, which is then no part of the latency.
  const double overhead_us =
      std::min(small.send_us >= kLeastOverhead_us ? small.send_us : 0, small_us / 2);
  return schedule::Link{small_us - overhead_us,
                        std::max(large_us - small_us, 0.01) / static_cast<double>(kLarge),
                        overhead_us};
}

void answer_pair(const PairEnd& end) {
  Exchange exchange(end, end.start_ns + kPatience_ns);
  std::vector<std::byte> buffer(kLarge);
  for (const size_t bytes : {kSmall, kLarge}) do {
      if (!exchange.receive(buffer.data(), bytes) || !exchange.send(buffer.data(), bytes)) return;
    } while (buffer[0] == kAgain);
}

Work measure_work(const Effort& effort) {
  std::vector<float> a(kLarge / 4, 1.0f), b(kLarge / 4, 2.0f), to(kLarge / 4);
  double copy_us = 1e9, reduce_us = 1e9;
  const int64_t until_ns = now_ns() + effort.part_ns;
  for (int64_t i = 0; i < effort.large_rounds && (i == 0 || now_ns() < until_ns); i++) {
    const int64_t start = now_ns();
    copy_bytes(to.data(), a.data(), kLarge);
    const int64_t middle = now_ns();
    reduce2(Type::float32, Op::sum, to.data(), a.data(), b.data(), kLarge / 4);
    copy_us = std::min(copy_us, us_between(start, middle));
    reduce_us = std::min(reduce_us, us_between(middle, now_ns()));
  }
  return {copy_us / static_cast<double>(kLarge), reduce_us / static_cast<double>(kLarge)};
}

// From a terabyte a microsecond to a byte in ten of them; from a nanosecond to a second.
bool plausible(const schedule::Link& link) {
  return within(link.latency_us, 1e-3, 1e6) && within(link.us_per_byte, 1e-8, 10) &&
         within(link.overhead_us, 0, 1e6);
}

bool plausible(const Work& work) {
  return within(work.copy_us_per_byte, 1e-8, 10) && within(work.reduce_us_per_byte, 1e-8, 10);
}

}  // namespace hcomm::comm
