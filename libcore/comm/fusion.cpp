// SPDX-License-Identifier: Apache-2.0
#include "comm/fusion.h"

#include <cstring>
#include <iterator>
#include <map>

#include "base/bytes.h"
#include "schedule/schedule.h"

namespace hcomm::comm {

namespace {

// What one fusion may hold: far beyond where merging pays.
constexpr size_t kMostBytes = size_t{4} << 20;

size_t bytes_of(const Call& call) { return call.count * size_of(call.type); }

bool mergeable(const Call& call) {
  return call.collective == schedule::Collective::all_reduce && call.op != Op::premul_sum &&
         bytes_of(call) <= kMostBytes;
}

}  // namespace

Call Fusion::merged(std::span<const Call> parts) {
  Call call;
  call.collective = schedule::Collective::all_reduce;
  call.type = parts.front().type;
  call.op = parts.front().op;
  call.in_place = true;
  call.cut = kHashSeed;
  for (const Call& part : parts) {
    call.count += part.count;
    call.cut = hash_number(part.count, call.cut);
  }
  return call;
}

Fusion::Fusion(std::span<const Call> parts)
    : parts_(parts.begin(), parts.end()), call_(merged(parts)) {
  packed_.resize(bytes_of(call_));
  call_.send = call_.recv = packed_.data();
}

void Fusion::pack() {
  std::byte* to = packed_.data();
  for (const Call& part : parts_) {
    const size_t bytes = bytes_of(part);
    if (bytes > 0) std::memcpy(to, part.send, bytes);
    to += bytes;
  }
}

void Fusion::unpack() const {
  const std::byte* from = packed_.data();
  for (const Call& part : parts_) {
    const size_t bytes = bytes_of(part);
    if (bytes > 0) std::memcpy(part.recv, from, bytes);
    from += bytes;
  }
}

size_t first_dependent(std::span<const Call> calls) {
  if (calls.size() == 1) return 1;
  std::map<uintptr_t, uintptr_t> written;  // begin, end; disjoint
  const auto meets = [&](uintptr_t begin, size_t bytes) {
    const auto after = written.lower_bound(begin + bytes);
    return bytes > 0 && after != written.begin() && std::prev(after)->second > begin;
  };
  for (size_t i = 0; i < calls.size(); i++) {
    const Call& call = calls[i];
    if (call.collective != schedule::Collective::all_reduce) {
      written.clear();
      continue;
    }
    const size_t bytes = bytes_of(call);
    const auto send = reinterpret_cast<uintptr_t>(call.send);
    const auto recv = reinterpret_cast<uintptr_t>(call.recv);
    if (meets(send, bytes) || meets(recv, bytes)) return i;
    if (bytes > 0) written[recv] = recv + bytes;
  }
  return calls.size();
}

size_t worth_merging(std::span<const Call> calls, const Prices& prices) {
  const Call& first = calls.front();
  if (!mergeable(first)) return 1;
  double price_us = 0;  // of the first `best`
  size_t bytes = bytes_of(first), best = 1;
  for (; best < calls.size(); best++) {
    const Call& next = calls[best];
    bytes += bytes_of(next);
    if (!mergeable(next) || next.type != first.type || next.op != first.op || bytes > kMostBytes)
      break;
    if (best == 1) price_us = prices.predict_us(first);
    const double together_us = prices.predict_us(Fusion::merged(calls.first(best + 1))) +
                               2 * prices.copy_us_per_byte * static_cast<double>(bytes);
    if (together_us > price_us + prices.predict_us(next)) break;
    price_us = together_us;
  }
  return best;
}

}  // namespace hcomm::comm
