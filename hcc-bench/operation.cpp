// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/operation.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/options.h"

namespace hcomm::bench {

namespace {

using enum Operation;

constexpr OperationInfo kOperations[] = {
    {all_reduce, "allreduce", "all_reduce", "reduction, result on all ranks", Cut::whole, Part::all,
     Part::all, true, true},
    {reduce, "reduce", "reduce", "reduction, result on the root", Cut::whole, Part::all,
     Part::all_at_root, true, true},
    {broadcast, "broadcast", "broadcast", "root's data to all", Cut::whole, Part::all_at_root,
     Part::all, false, true},
    {all_gather, "allgather", "all_gather", "a block of each rank to all", Cut::even_blocks,
     Part::own_block, Part::all, false, true},
    {reduce_scatter, "reducescatter", "reduce_scatter", "reduction, a block of it on each rank",
     Cut::even_blocks, Part::all, Part::own_block, true, true},
    {all_to_all, "alltoall", "all_to_all", "a block from each rank to each", Cut::even_blocks,
     Part::all, Part::all, false, true},
    {gather, "gather", "gather", "a block of each rank to the root", Cut::even_blocks,
     Part::own_block, Part::all_at_root, false, true},
    {scatter, "scatter", "scatter", "a block of the root to each rank", Cut::even_blocks,
     Part::all_at_root, Part::own_block, false, true},
    {barrier, "barrier", "barrier", "all ranks wait for all", Cut::whole, Part::none, Part::none,
     false, false},
    {all_gather_v, "allgatherv", "all_gather_v", "allgather, unequal blocks", Cut::uneven_blocks,
     Part::own_block, Part::all, false, true},
    {reduce_scatter_v, "reducescatterv", "reduce_scatter_v", "reducescatter, unequal blocks",
     Cut::uneven_blocks, Part::all, Part::own_block, true, true},
    {all_to_all_v, "alltoallv", "all_to_all_v", "alltoall, unequal blocks", Cut::uneven_blocks,
     Part::all, Part::all, false, true},
    {gather_v, "gatherv", "gather_v", "gather, unequal blocks", Cut::uneven_blocks, Part::own_block,
     Part::all_at_root, false, true},
    {scatter_v, "scatterv", "scatter_v", "scatter, unequal blocks", Cut::uneven_blocks,
     Part::all_at_root, Part::own_block, false, true},
    {send_recv, "sendrecv", "send", "ring: each rank sends to the next", Cut::whole, Part::all,
     Part::all, false, false},
    {ping_pong, "pingpong", "send", "ranks 0 and 1, one way", Cut::whole, Part::all, Part::all,
     false, false},
    {startup, "startup", "", "making and ending communicators", Cut::whole, Part::none, Part::none,
     false, false},
};

std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != '-' && c != '_') result += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return result;
}

void append(std::vector<Operation>& list, std::string_view word) {
  const std::string name = plain(word);
  const auto add = [&](Operation operation) {
    if (std::find(list.begin(), list.end(), operation) == list.end()) list.push_back(operation);
  };
  if (name == "p2p") {
    add(send_recv);
    return add(ping_pong);
  }
  bool known = name == "all";
  for (const OperationInfo& each : kOperations) {
    const bool wanted = name == "all" ? each.operation != startup : name == each.name;
    if (wanted) add(each.operation);
    known = known || wanted;
  }
  if (known) return;
  std::vector<std::string> names = {"all", "p2p"};
  for (const OperationInfo& each : kOperations) names.emplace_back(each.name);
  fail(Code::invalid_argument, "unknown operation '{}'{}", word, cli::did_you_mean(name, names));
}

// V forms: block i has a share of 1 + i mod 3 of the elements; the last takes what is left over.
void share_out(Layout& layout, size_t ranks, size_t shift) {
  size_t weights = 0, given = 0;
  for (size_t i = 0; i < ranks; i++) weights += 1 + i % 3;
  for (size_t i = 0; i < ranks; i++) {
    const size_t weight = 1 + (i + shift) % ranks % 3;
    layout.counts.push_back(layout.elements / weights * weight);
    given += layout.counts.back();
  }
  // All-to-all needs counts[j] of rank i == counts[i] of rank j: the place of the rest depends on
  // i + j alone.
  layout.counts[(ranks - 1 + ranks - shift % ranks) % ranks] += layout.elements - given;
  for (size_t i = 0, at = 0; i < ranks; at += layout.counts[i++])
    layout.displacements.push_back(at);
}

}  // namespace

const OperationInfo& info(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

std::span<const OperationInfo> operations() {
  return kOperations;
}

std::vector<Operation> parse_operations(std::string_view text) {
  std::vector<Operation> list;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    append(list, rest.substr(0, comma));
    if (comma == std::string_view::npos) return list;
    rest = rest.substr(comma + 1);
  }
}

double bus_factor(Operation operation, int ranks) {
  const double n = ranks, share = (n - 1) / n;
  if (operation == all_reduce) return 2 * share;
  return info(operation).cut == Cut::whole ? 1 : share;
}

Layout layout(Operation operation, size_t bytes, size_t element_bytes, const Place& place) {
  const OperationInfo& about = info(operation);
  const auto n = static_cast<size_t>(place.ranks), rank = static_cast<size_t>(place.rank);
  Layout result;
  if (about.send == Part::none) return result;
  result.elements = bytes == 0 ? 0 : std::max<size_t>(1, bytes / element_bytes);
  switch (about.cut) {
    case Cut::whole:
      result.count = result.elements;
      break;
    case Cut::even_blocks:
      result.count = bytes == 0 ? 0 : std::max<size_t>(1, result.elements / n);
      result.elements = result.count * n;
      result.own = rank * result.count;
      break;
    case Cut::uneven_blocks:
      share_out(result, n, operation == all_to_all_v ? rank : 0);
      result.count = result.counts[rank];
      result.own = result.displacements[rank];
      break;
  }
  const auto part = [&](Part which) {
    if (which == Part::own_block) return result.count;
    return which == Part::all || place.rank == place.root ? result.elements : 0;
  };
  result.send = part(about.send);
  result.recv = part(about.recv);
  result.bytes = result.elements * element_bytes;
  return result;
}

}  // namespace hcomm::bench
