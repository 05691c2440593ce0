// SPDX-License-Identifier: Apache-2.0
#include "api/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "api/handles.h"

namespace hcomm::api {

namespace {

using comm::Blocks;
using comm::Call;
using schedule::Collective;
using schedule::kInput;
using schedule::kOutput;

constexpr size_t kMaxBytes = SIZE_MAX / 2;  // of any buffer: more is a mistake, not a message

struct Extent {
  uintptr_t first = 0;
  size_t bytes = 0;
  bool overlaps(const Extent& other) const {
    return bytes > 0 && other.bytes > 0 && first < other.first + other.bytes &&
           other.first < first + bytes;
  }
};

// The bytes from the first to the last element of all blocks; false when that is too large.
bool extent_of(const void* data, const Blocks& blocks, size_t count, uint32_t number,
               size_t element, Extent& extent) {
  if (!blocks.counts && !blocks.displs) [[likely]] {
    size_t total = 0, bytes = 0;
    if (__builtin_mul_overflow(count, number, &total) ||
        __builtin_mul_overflow(total, element, &bytes) || bytes > kMaxBytes)
      return false;
    extent = {reinterpret_cast<uintptr_t>(data), bytes};
    return true;
  }
  size_t end = 0, low = SIZE_MAX, total = 0;
  for (uint32_t i = 0; i < number; i++) {
    const size_t length = blocks.counts ? blocks.counts[i] : count;
    const size_t first = blocks.displs ? blocks.displs[i] : total;
    if (__builtin_add_overflow(total, length, &total)) return false;
    if (length == 0) continue;
    size_t last = 0;
    if (__builtin_add_overflow(first, length, &last)) return false;
    end = std::max(end, last);
    low = std::min(low, first);
  }
  if (end > kMaxBytes / element || total > kMaxBytes / element) return false;
  if (end == 0) return true;
  extent = {reinterpret_cast<uintptr_t>(data) + low * element, (end - low) * element};
  return true;
}

// Blocks of a V collective must not overlap one another where they are written.
bool blocks_overlap(const Blocks& blocks, uint32_t number) {
  if (!blocks.counts || !blocks.displs) return false;
  for (uint32_t i = 0; i < number; i++)
    for (uint32_t j = 0; j < i; j++) {
      const size_t a = blocks.displs[i], b = blocks.displs[j];
      if (blocks.counts[i] > 0 && blocks.counts[j] > 0 && a < b + blocks.counts[j] &&
          b < a + blocks.counts[i])
        return true;
    }
  return false;
}

size_t displacement(const Blocks& blocks, uint32_t block, size_t count) {
  if (blocks.displs) return blocks.displs[block];
  if (!blocks.counts) return block * count;
  size_t first = 0;
  for (uint32_t i = 0; i < block; i++) first += blocks.counts[i];
  return first;
}

// Whether the pointers are in place by the rule of the collective; the rules are in hcomm.h.
bool in_place(const Call& call, uint32_t rank, size_t element) {
  const auto send = reinterpret_cast<uintptr_t>(call.send);
  const auto recv = reinterpret_cast<uintptr_t>(call.recv);
  switch (call.collective) {
    case Collective::all_reduce:
    case Collective::all_to_all: return send == recv;
    case Collective::reduce:
    case Collective::broadcast: return rank == call.root && send == recv;
    case Collective::gather:
      if (rank != call.root) return false;
      [[fallthrough]];
    case Collective::all_gather:
      return send == recv + displacement(call.recv_blocks, rank, call.count) * element;
    case Collective::scatter:
      if (rank != call.root) return false;
      [[fallthrough]];
    case Collective::reduce_scatter:
      return recv == send + displacement(call.send_blocks, rank, call.count) * element;
    default: return false;
  }
}

bool same_blocks(const Call& call, uint32_t ranks) {
  for (uint32_t i = 0; i < ranks; i++)
    if (call.send_blocks.counts[i] != call.recv_blocks.counts[i] ||
        displacement(call.send_blocks, i, 0) != displacement(call.recv_blocks, i, 0))
      return false;
  return true;
}

std::string check_buffers(Call& call, uint32_t rank, uint32_t ranks) {
  const schedule::Shape shape{.collective = call.collective, .ranks = ranks, .rank = rank,
                              .root = call.root};
  const uint32_t inputs = blocks_of(shape, kInput), outputs = blocks_of(shape, kOutput);
  const size_t element = size_of(call.type);
  Extent from, to;
  if (!extent_of(call.send, call.send_blocks, call.count, inputs, element, from) ||
      !extent_of(call.recv, call.recv_blocks, call.count, outputs, element, to))
    return fmt::format("count={}: more bytes than memory can have", call.count);
  if (from.bytes > 0 && call.send == nullptr) return "send is NULL though there is data to send";
  if (to.bytes > 0 && call.recv == nullptr) return "recv is NULL though there is data to receive";
  const Blocks& rooted = call.collective == Collective::gather ? call.recv_blocks
                                                               : call.send_blocks;
  if (call.varied && schedule::rooted(call.collective) && rooted.counts &&
      rooted.counts[rank] != call.count)
    return fmt::format("the root's own count is {}, counts[{}] is {}", call.count, rank,
                       rooted.counts[rank]);
  if (outputs > 1 && blocks_overlap(call.recv_blocks, outputs))
    return "blocks of recv overlap one another: check counts and displs";
  call.in_place = in_place(call, rank, element);
  if (call.in_place && call.collective == Collective::all_to_all && call.varied &&
      !same_blocks(call, ranks))
    return "in place needs equal counts and displacements for send and recv";
  if (!call.in_place && from.overlaps(to))
    return fmt::format("send {} and recv {} overlap ({} and {} bytes) and are not in place by the "
                       "rule of {}",
                       call.send, call.recv, from.bytes, to.bytes, name(call.collective));
  return "";
}

std::string check_operator(Arguments& arguments, hcommComm_t comm) {
  Call& call = arguments.call;
  if (arguments.op >= hcommNumOps) {
    const auto index = static_cast<size_t>(arguments.op - hcommNumOps);
    if (index >= comm->operators.size() || !comm->operators[index].used)
      return fmt::format("op={} was not made by hcommRedOpCreatePreMulSum on this communicator",
                         arguments.op);
    const hcommComm::Operator& made = comm->operators[index];
    if (made.type != call.type)
      return fmt::format("op={} was made for {}, the call has {}", arguments.op, name(made.type),
                         name(call.type));
    call.op = Op::premul_sum;
    std::memcpy(call.factor, made.factor, sizeof call.factor);
    return "";
  }
  if (arguments.op < 0) return fmt::format("op={} is no operator", arguments.op);
  call.op = static_cast<Op>(arguments.op);
  if (!allowed(call.op, call.type))
    return fmt::format("op={} is for integer types, the call has {}", name(call.op),
                       name(call.type));
  return "";
}

}  // namespace

std::string check(Arguments& arguments, hcommComm_t comm) {
  Call& call = arguments.call;
  const uint32_t rank = comm->communicator->rank(), ranks = comm->communicator->ranks();
  if (arguments.type < 0 || arguments.type >= hcommNumTypes)
    return fmt::format("datatype={} is no type; there are 0..{}", arguments.type,
                       hcommNumTypes - 1);
  call.type = static_cast<Type>(arguments.type);
  const bool to_peer = call.collective == Collective::point_to_point;
  if (arguments.root < 0 || arguments.root >= static_cast<int64_t>(ranks))
    return fmt::format("{}={} is no rank of the communicator; there are 0..{}",
                       to_peer ? "peer" : "root", arguments.root, ranks - 1);
  call.root = static_cast<uint32_t>(arguments.root);
  if (schedule::reduces(call.collective)) {
    if (std::string wrong = check_operator(arguments, comm); !wrong.empty()) return wrong;
  }
  if (to_peer) {
    if (call.count > kMaxBytes / size_of(call.type))
      return fmt::format("count={}: more bytes than memory can have", call.count);
    const void* data = call.sending ? call.send : call.recv;
    return data == nullptr && call.count > 0 ? "the buffer is NULL though count is not 0" : "";
  }
  if (call.collective == Collective::barrier) return "";
  return check_buffers(call, rank, ranks);
}

}  // namespace hcomm::api
