// SPDX-License-Identifier: Apache-2.0
// The schedule: one intermediate representation for every collective. A schedule is what one rank
// does in one collective: steps over chunks. It is a value: it knows no byte count, no pointer, no
// transport; it can be printed, proved (check.h), priced (cost.h) and is run by the engine only.
// Made by the Builder (builder.h), owned by whoever holds it.
//
// Chunks. The input and the output of a rank are made of blocks (blocks_of): all-reduce has one of
// each; all-gather one input block and an output block a rank; reduce-scatter the reverse; all-to-
// all a block a rank in both. Every block is cut into `parts` chunks of nearly equal element
// counts; chunk index = block * parts + part. A part is the same share of every block, and a V
// collective
// (`varied`) gives each block its own length, so a message always holds what its receiver expects:
// whatever holds (block b, part p) has the length of (b, p). A scratch chunk mirrors the input or
// output chunk whose data it will hold, and has its length; a token mirrors nothing and is empty.
//
// A large message is cut into tiles; the engine runs the whole schedule once a tile.
//
// Order. A step starts when all its needs (indices of earlier steps) are done. Besides, the sends
// of a rank to one peer start in step order, and so do its receives from one peer: that order is
// how messages find their receives. A send is done when the peer has all its bytes, or sooner.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hcomm::schedule {

enum class Collective : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  point_to_point,  // a group of sends and receives; built by comm, never by an algorithm
};
inline constexpr int kCollectives = 9;         // those that algorithms build
std::string_view name(Collective collective);  // "all_reduce"
bool reduces(Collective collective);
bool rooted(Collective collective);

// What a schedule is for, as one rank sees it. `in_place` is known to each rank alone: it may add
// needs, and (all-to-all) local copies; it never changes the messages.
struct Shape {
  Collective collective = Collective::barrier;
  bool varied = false;  // a V collective: blocks have lengths of their own
  bool in_place = false;
  uint32_t ranks = 1, rank = 0, root = 0;
  auto operator<=>(const Shape&) const = default;
};

enum : uint16_t { kInput = 0, kOutput = 1, kScratch = 2, kNothing = 0xffff };

struct Slice {
  uint16_t buffer = kNothing;
  uint32_t chunk = 0, count = 0;
  auto operator<=>(const Slice&) const = default;
};

enum class StepKind : uint8_t { send, recv, copy, reduce, encode, decode, native };
std::string_view name(StepKind kind);

// send: a goes to every peer of the set. recv: from the one peer into to. copy: to = a.
// reduce: to = a op b, in this order; to may be a or b. encode, decode, native: reserved.
struct Step {
  StepKind kind = StepKind::copy;
  uint32_t first_peer = 0, peer_count = 0;  // in Schedule::peers
  Slice a, b, to;
  uint32_t first_need = 0, need_count = 0;  // in Schedule::needs
  bool operator==(const Step&) const = default;
};

// How a reduction associates: any tree, the same on all ranks; or a left fold in rank order, made
// in one place from the unrounded inputs (deterministic mode admits only this).
enum class Order : uint8_t { any, rank };

struct Schedule {
  Shape shape;
  std::string_view algorithm;  // a constant of the program
  Order order = Order::any;
  uint32_t parts = 1;
  std::vector<Step> steps;
  std::vector<uint32_t> needs;
  std::vector<uint32_t> peers;
  std::vector<Slice> scratch;  // scratch[i]: the one input or output chunk that chunk i mirrors

  std::span<const uint32_t> needs_of(const Step& step) const {
    return {needs.data() + step.first_need, step.need_count};
  }
  std::span<const uint32_t> peers_of(const Step& step) const {
    return {peers.data() + step.first_peer, step.peer_count};
  }
  bool operator==(const Schedule&) const = default;
};

// Blocks of the input (kInput) or output (kOutput) of shape.rank: 0, 1 or ranks.
uint32_t blocks_of(const Shape& shape, uint16_t buffer);
// In place, the output chunk that is the same memory as this input chunk; count 0 when none is.
// (all_reduce, reduce at root, broadcast at root, all_to_all: the same chunk; all_gather, gather at
// root: block `rank` of the output; reduce_scatter, scatter at root: input block `rank` is output
// block 0.)
Slice in_place_alias(const Shape& shape, uint32_t parts, uint32_t input_chunk);

// A hash of all that peers must agree on: algorithm, order, parts and collective, ranks, root,
// varied; not the rank, not in_place.
uint64_t plan_hash(const Schedule& schedule);

}  // namespace hcomm::schedule
