// SPDX-License-Identifier: Apache-2.0
// The operations that can be measured: names, and what their size means to each rank. The size of
// an operation is what nccl-tests counts: the larger of what one rank sends and receives, all
// blocks together; so is busbw's factor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm::bench {

enum class Operation : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  all_gather_v,
  reduce_scatter_v,
  all_to_all_v,
  gather_v,
  scatter_v,
  send_recv,  // a ring: every rank sends to the next and receives from the one before
  ping_pong,  // ranks 0 and 1; the time is one way
  startup,
};

// How the data of a rank are cut, and what of them it passes.
enum class Cut : uint8_t { whole, even_blocks, uneven_blocks };
enum class Part : uint8_t { none, all, all_at_root, own_block };

struct OperationInfo {
  Operation operation;
  std::string_view name;     // "allreduce", as the user writes it
  std::string_view call;     // "all_reduce", as hcommCommExplain does; "" for startup
  std::string_view meaning;  // one line
  Cut cut;
  Part send, recv;
  bool reduces, in_place;
  bool rooted() const { return send == Part::all_at_root || recv == Part::all_at_root; }
};
const OperationInfo& info(Operation operation);
std::span<const OperationInfo> operations();

// "allreduce,all-gather", "all" (every collective and p2p), "p2p". Case, '-' and '_' do not matter.
// Throws invalid_argument with the nearest name.
std::vector<Operation> parse_operations(std::string_view text);

// From algbw to busbw: all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all, gather, scatter
// (n-1)/n; others 1.
double bus_factor(Operation operation, int ranks);

// What a rank passes and holds for an operation of so many bytes. Blocks are those of the call.
struct Layout {
  size_t bytes = 0;     // as counted: may be less than asked where blocks must be equal
  size_t elements = 0;  // of all blocks
  size_t count = 0;     // argument of the call; of a V form that of this rank
  std::vector<size_t> counts, displacements;  // of the V forms
  size_t send = 0, recv = 0;  // elements that this rank's buffers hold (at root 0 <= root < ranks)
  // In place: element of the larger buffer at which the smaller lies.
  size_t own = 0;
};
struct Place {
  int rank = 0, ranks = 1, root = 0;
};
Layout layout(Operation operation, size_t bytes, size_t element_bytes, const Place& place);

}  // namespace hcomm::bench
