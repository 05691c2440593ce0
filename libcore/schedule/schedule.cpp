// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include "base/bytes.h"

namespace hcomm::schedule {

std::string_view name(Collective collective) {
  static constexpr std::string_view kNames[] = {
      "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
      "all_to_all", "gather", "scatter",   "barrier",    "point_to_point"};
  return kNames[static_cast<size_t>(collective)];
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

bool rooted(Collective collective) {
  return collective == Collective::reduce || collective == Collective::broadcast ||
         collective == Collective::gather || collective == Collective::scatter;
}

std::string_view name(StepKind kind) {
  static constexpr std::string_view kNames[] = {"send",   "recv",   "copy",  "reduce",
                                                "encode", "decode", "native"};
  return kNames[static_cast<size_t>(kind)];
}

uint32_t blocks_of(const Shape& shape, uint16_t buffer) {
  const bool input = buffer == kInput, at_root = shape.rank == shape.root;
  switch (shape.collective) {
    case Collective::all_reduce:
      return 1;
    case Collective::reduce:
      return input || at_root ? 1 : 0;
    case Collective::broadcast:
      return !input || at_root ? 1 : 0;
    case Collective::all_gather:
      return input ? 1 : shape.ranks;
    case Collective::reduce_scatter:
      return input ? shape.ranks : 1;
    case Collective::all_to_all:
      return shape.ranks;
    case Collective::gather:
      return input ? 1 : at_root ? shape.ranks : 0;
    case Collective::scatter:
      return !input ? 1 : at_root ? shape.ranks : 0;
    case Collective::barrier:
    case Collective::point_to_point:
      return 0;
  }
  return 0;
}

Slice in_place_alias(const Shape& shape, uint32_t parts, uint32_t input_chunk) {
  if (!shape.in_place) return {};
  const uint32_t block = input_chunk / parts, part = input_chunk % parts;
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::all_to_all:
      return {kOutput, input_chunk, 1};
    case Collective::reduce:
    case Collective::broadcast:
      return shape.rank == shape.root ? Slice{kOutput, input_chunk, 1} : Slice{};
    case Collective::all_gather:
      return {kOutput, shape.rank * parts + part, 1};
    case Collective::gather:
      return shape.rank == shape.root ? Slice{kOutput, shape.rank * parts + part, 1} : Slice{};
    case Collective::reduce_scatter:
      return block == shape.rank ? Slice{kOutput, part, 1} : Slice{};
    case Collective::scatter:
      return block == shape.rank && shape.rank == shape.root ? Slice{kOutput, part, 1} : Slice{};
    case Collective::barrier:
    case Collective::point_to_point:
      return {};
  }
  return {};
}

uint64_t plan_hash(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  uint64_t hash = hash_bytes(schedule.algorithm);
  for (const uint64_t value :
       {static_cast<uint64_t>(schedule.order), static_cast<uint64_t>(schedule.parts),
        static_cast<uint64_t>(shape.collective), static_cast<uint64_t>(shape.varied),
        static_cast<uint64_t>(shape.ranks), static_cast<uint64_t>(shape.root)})
    hash = hash_number(value, hash);
  return hash;
}

}  // namespace hcomm::schedule
