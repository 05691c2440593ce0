// SPDX-License-Identifier: Apache-2.0
#include "comm/bound.h"

#include <utility>

#include "base/bytes.h"
#include "datatype/kernels.h"

namespace hcomm::comm {

using schedule::Collective;
using schedule::kInput;
using schedule::kOutput;

namespace {

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }

engine::Buffer buffer_of(const void* data, size_t count, const Blocks& blocks) {
  return {.data = static_cast<std::byte*>(const_cast<void*>(data)),
          .block_elements = count, .counts = blocks.counts, .displs = blocks.displs};
}

// What a rank reads and writes, as far as lengths are in the call.
uint64_t bytes_of(const Call& call, const schedule::Shape& shape) {
  const uint64_t blocks = uint64_t{blocks_of(shape, kInput)} + blocks_of(shape, kOutput);
  return call.varied ? 0 : blocks * call.count * size_of(call.type);
}

}  // namespace

void Bound::begin(const Call& call, uint32_t sequence) {
  again_ = false;
  calls_.assign(1, call);
  // What is scaled lies elsewhere: never in place.
  Call planned = call;
  if (call.op == Op::premul_sum) planned.in_place = false;
  Plans::Found found = around_->plans->find(planned);
  plan_ = std::move(found.plan);
  signature_ = found.signature;
  bind(call);
  const uint32_t avg_ranks =
      call.op == Op::avg && around_->ranks > 1 && reduces(call.collective) ? around_->ranks : 0;
  const schedule::Shape& shape = plan_->schedule.shape;
  executor_.bind({.shape = &shape,
                  .program = &plan_->program,
                  .window = plan_->window,
                  .label = {sequence, signature_},
                  .type = call.type,
                  .op = call.op,
                  .avg_ranks = avg_ranks,
                  // Averages are read again, to be divided.
                  .store = avg_ranks > 0 ? Store::cached : store_of(bytes_of(call, shape))},
                 binding_);
  // Arrays may have changed behind their pointers, and scaled inputs must be scaled anew.
  again_ = !call.varied && call.op != Op::premul_sum && !exported();
}

// Of memory that peers map, and that may have been freed since it was looked up.
bool Bound::exported() const {
  return std::any_of(binding_.buffers.begin(), binding_.buffers.end(),
                     [](const engine::Buffer& buffer) { return buffer.exported.has_value(); });
}

void Bound::bind(const Call& call) {
  binding_.element_bytes = size_of(call.type);
  binding_.parts = plan_->program.parts;
  binding_.tile_elements =
      plan_->tile_bytes == 0 ? SIZE_MAX
                             : std::max<size_t>(1, plan_->tile_bytes / binding_.element_bytes);
  binding_.buffers.resize(3);
  binding_.buffers[kInput] = call.op == Op::premul_sum
                                 ? scaled_input(call)
                                 : buffer_of(call.send, call.count, call.send_blocks);
  binding_.buffers[kOutput] = buffer_of(call.recv, call.count, call.recv_blocks);
  if (call.varied) return;
  for (const uint16_t side : {kInput, kOutput}) {
    engine::Buffer& buffer = binding_.buffers[side];
    const size_t bytes =
        blocks_of(plan_->schedule.shape, side) * call.count * binding_.element_bytes;
    if (bytes >= 4096) buffer.exported = around_->memory->find(buffer.data, bytes);
  }
}

// premul_sum scales each contribution once, at its first read: here, into memory of our own, block
// behind block.
engine::Buffer Bound::scaled_input(const Call& call) {
  const schedule::Shape shape{
      .collective = call.collective, .ranks = around_->ranks, .rank = around_->rank};
  const engine::Buffer given = buffer_of(call.send, call.count, call.send_blocks);
  const uint32_t blocks = blocks_of(shape, kInput);
  const size_t element_bytes = size_of(call.type);
  size_t elements = 0;
  for (uint32_t i = 0; i < blocks; i++) elements += given.count_of(i);
  scaled_.resize(elements * element_bytes);
  size_t at = 0;
  for (uint32_t i = 0; i < blocks; i++) {
    const size_t count = given.count_of(i);
    if (count == 0) continue;
    scale(call.type, scaled_.data() + at * element_bytes,
          given.data + given.first_of(i) * element_bytes, call.factor, count);
    at += count;
  }
  return buffer_of(scaled_.data(), call.count, {call.send_blocks.counts, nullptr});
}

// Types may differ from message to message; what a pair must agree on is that this is no
// collective, and the length, which the transport compares.
void Bound::begin_exchange(std::span<const Call> calls) {
  constexpr uint64_t kSignature =
      hash_number(static_cast<uint64_t>(Collective::point_to_point), kHashSeed);
  again_ = false;
  calls_.assign(calls.begin(), calls.end());
  signature_ = low(kSignature);
  std::vector<std::pair<bool, uint32_t>> pattern;
  binding_.buffers.resize(3);
  binding_.buffers[kInput] = binding_.buffers[kOutput] = {};
  binding_.element_bytes = 1;
  binding_.parts = 1;
  binding_.tile_elements = SIZE_MAX;
  uint64_t all_bytes = 0;
  for (const Call& call : calls) {
    pattern.emplace_back(call.sending, call.root);
    const size_t bytes = call.count * size_of(call.type);
    all_bytes += bytes;
    engine::Buffer buffer = buffer_of(call.sending ? call.send : call.recv, bytes, {});
    if (call.sending && bytes >= 4096)
      buffer.exported = around_->memory->find(buffer.data, bytes);
    binding_.buffers.push_back(buffer);
  }
  plan_ = around_->plans->exchange(pattern);
  executor_.bind({.shape = &plan_->schedule.shape,
                  .program = &plan_->program,
                  .window = 1,
                  .label = {0, signature_},
                  .type = Type::uint8,
                  .op = Op::sum,
                  .store = store_of(all_bytes)},
                 binding_);
  again_ = !exported();
}

}  // namespace hcomm::comm
