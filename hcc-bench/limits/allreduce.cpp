// SPDX-License-Identifier: Apache-2.0
// All-reduces of two processes written for this machine alone, float32 sum: no library over shared
// memory can be faster than `direct` where ranks map one another's buffers, nor than `bounce` where
// buffers are private and every byte goes through a ring. Several ways are tried; the fastest
// counts.
#include <fmt/format.h>

#include "base/copy.h"
#include "datatype/kernels.h"
#include "hcc-bench/limits/crew.h"
#include "hcc-bench/measure/memory.h"

namespace hcomm::bench::limits {

namespace {

constexpr size_t kSizes[] = {4, 64 * kKiB, kMiB, 16 * kMiB, 256 * kMiB};
constexpr size_t kBuffers = 4;  // an input and a result of each process
constexpr float kSum = 3;       // of inputs 1 and 2

void add(float* to, const float* a, const float* b, size_t count, Store store) {
  reduce2(Type::float32, Op::sum, to, a, b, count, store);
}

void require_sum(const float* result, size_t count) {
  if (result[0] != kSum || result[count / 2] != kSum || result[count - 1] != kSum)
    fail(Code::internal, "an all-reduce of hcc-bench limits is wrong");
}

// Up to what stands in one line: the value travels with the flag. Two lines a member in turn, since
// a peer may still read the one before.
void exchange_line(Member& member) {
  constexpr int kLines = 2;
  float result = 0;
  member.time([&member, &result, round = uint32_t{0}]() mutable {
    round++;
    const int half = static_cast<int>(round % 2);
    Line& own = member.line(kLines * member.rank() + half);
    Line& other = member.line(kLines * member.peer() + half);
    own.payload[0] = static_cast<float>(member.rank() + 1);
    own.turn.store(round, std::memory_order_release);
    member.await(other.turn, round);
    result = own.payload[0] + other.payload[0];
  });
  require_sum(&result, 1);
}

void meet(Member& member, uint32_t round) {
  member.line(member.rank()).turn.store(round, std::memory_order_release);
  member.await(member.line(member.peer()).turn, round);
}

// Each member sums half of the elements into both results; the inputs' second reading, for the
// second result, comes out of the nearest cache.
void run_direct(Member& member, const Mapping (&buffers)[kBuffers], size_t count, Store store) {
  const auto own = static_cast<size_t>(member.rank());
  buffers[own].fill(static_cast<float>(own + 1));
  buffers[2 + own].fill(0);
  const float *a = buffers[0].as<float>(), *b = buffers[1].as<float>();
  float *first = buffers[2].as<float>(), *second = buffers[3].as<float>();
  const size_t begin = own * (count / 2), end = own == 0 ? count / 2 : count;
  const size_t step = (store == Store::cached ? 8 * kKiB : 64 * kKiB) / sizeof(float);
  member.barrier();
  member.time([&, round = uint32_t{0}]() mutable {
    meet(member, ++round);
    for (size_t at = begin; at < end; at += step) {
      const size_t some = std::min(step, end - at);
      add(first + at, a + at, b + at, some, store);
      add(second + at, a + at, b + at, some, store);
    }
    meet(member, ++round);
  });
  require_sum(buffers[2 + own].as<float>(), count);
}

struct Way {
  size_t chunk_bytes = 0;  // of the ring
  bool ring_streams = false, result_streams = false;

  std::string text() const {
    std::string words = chunk_bytes > 0 ? "chunks of " + size_text(chunk_bytes) : "";
    const auto add_words = [&](const char* more) {
      words += words.empty() ? more : fmt::format(", {}", more);
    };
    if (ring_streams) add_words("ring past the caches");
    if (result_streams) add_words("result past the caches");
    return words;
  }
  Store result_store() const { return result_streams ? Store::streaming : Store::cached; }
};

// One side of a bounce. Chunks are published up to two ahead of the one that is summed, so a slot
// of the four is written again only when the peer's count shows that it has left it.
class Bounce {
 public:
  static constexpr uint32_t kSlots = 4;

  Bounce(Member& member, const Mapping& ring, size_t count, const Way& way)
      : member_(member),
        way_(way),
        count_(count),
        chunk_(way.chunk_bytes / sizeof(float)),
        own_(ring.as<float>() + static_cast<size_t>(member.rank()) * kSlots * chunk_),
        other_(ring.as<float>() + static_cast<size_t>(member.peer()) * kSlots * chunk_),
        input_(count * sizeof(float), Sharing::own),
        result_(count * sizeof(float), Sharing::own) {
    input_.fill(static_cast<float>(member.rank() + 1));
    result_.fill(0);
  }

  void run() {
    const auto chunks = static_cast<uint32_t>(divide_up(count_, chunk_));
    uint32_t published = 0;
    publish(published++);
    for (uint32_t i = 0; i < chunks; i++) {
      if (published < chunks) publish(published++);
      member_.await(member_.line(member_.peer()).turn, before_ + i + 1);
      const size_t at = i * chunk_;
      add(result_.as<float>() + at, input_.as<float>() + at, slot(other_, i), length(at),
          way_.result_store());
    }
    before_ += chunks;
  }
  void check() const { require_sum(result_.as<float>(), count_); }

 private:
  size_t length(size_t at) const { return std::min(chunk_, count_ - at); }
  float* slot(float* ring, uint32_t i) const { return ring + (before_ + i) % kSlots * chunk_; }

  void publish(uint32_t i) {
    const size_t at = i * chunk_;
    auto* to = reinterpret_cast<std::byte*>(slot(own_, i));
    const auto* from = reinterpret_cast<const std::byte*>(input_.as<float>() + at);
    const size_t bytes = length(at) * sizeof(float);
    if (way_.ring_streams) {
      copy_far(to, from, bytes);
      far_fence();
    } else {
      copy_near(to, from, bytes);
    }
    member_.line(member_.rank()).turn.store(before_ + i + 1, std::memory_order_release);
  }

  Member& member_;
  const Way& way_;
  const size_t count_, chunk_;
  float *own_, *other_;
  Mapping input_, result_;
  uint32_t before_ = 0;  // chunks of the operations that are done
};

std::vector<Way> direct_ways(size_t bytes) {
  if (bytes >= 256 * kMiB) return {{0, false, true}};
  if (bytes >= 16 * kMiB) return {{}, {0, false, true}};
  return {{}};
}

std::vector<Way> bounce_ways(size_t bytes) {
  if (bytes <= 64 * kKiB) return {{16 * kKiB}, {64 * kKiB}};
  if (bytes <= kMiB) return {{64 * kKiB}, {256 * kKiB}};
  if (bytes < 256 * kMiB)
    return {{256 * kKiB}, {256 * kKiB, true}, {256 * kKiB, false, true}, {256 * kKiB, true, true}};
  return {{256 * kKiB, false, true}, {256 * kKiB, true, true}};
}

Timed time_direct(const Request& request, size_t bytes, const Way& way) {
  const Mapping buffers[kBuffers] = {{bytes, Sharing::shared},
                                     {bytes, Sharing::shared},
                                     {bytes, Sharing::shared},
                                     {bytes, Sharing::shared}};
  return run_pair(request, [&](Member& member) {
    run_direct(member, buffers, bytes / sizeof(float), way.result_store());
  });
}

Timed time_bounce(const Request& request, size_t bytes, const Way& way) {
  const Mapping ring(2 * Bounce::kSlots * way.chunk_bytes, Sharing::shared);
  return run_pair(request, [&](Member& member) {
    Bounce bounce(member, ring, bytes / sizeof(float), way);
    member.barrier();
    member.time([&] { bounce.run(); });
    bounce.check();
  });
}

using TimeWay = Timed(const Request& request, size_t bytes, const Way& way);

void add_fastest(const Request& request, Limit limit, const std::vector<Way>& ways,
                 TimeWay* time_way) {
  std::optional<Timed> best;
  if (request.pairs() && kBuffers * limit.bytes <= available_bytes() / 4 * 3)
    for (const Way& way : ways) {
      const Timed timed = time_way(request, limit.bytes, way);
      if (best && best->best_us <= timed.best_us) continue;
      best = timed;
      limit.how = way.text();
    }
  add_of_pair(request, limit, [&] {
    if (!best)
      fail(Code::unavailable, "needs {} of memory", size_text(kBuffers * limit.bytes / 3 * 4));
    return *best;
  });
}

Limit limit_of(const char* name, size_t bytes, const char* bounds) {
  return {.section = "allreduce", .name = name, .bytes = bytes, .processes = 2, .bounds = bounds};
}

}  // namespace

void measure_allreduce(const Request& request) {
  constexpr const char* kDirect = "all-reduce of buffers from hcommMemAlloc";
  constexpr const char* kBounce = "all-reduce of any buffers";
  for (const size_t bytes : kSizes) {
    const Limit limit = limit_of("direct", bytes, kDirect);
    if (bytes <= sizeof(float))
      add_of_pair(request, limit, [&] { return run_pair(request, exchange_line); });
    else
      add_fastest(request, limit, direct_ways(bytes), time_direct);
  }
  for (const size_t bytes : kSizes) {
    const Limit limit = limit_of("bounce", bytes, kBounce);
    if (bytes <= sizeof(float))
      add_of_pair(request, limit, [&] { return run_pair(request, exchange_line); });
    else
      add_fastest(request, limit, bounce_ways(bytes), time_bounce);
  }
}

}  // namespace hcomm::bench::limits
