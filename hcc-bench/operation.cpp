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
    {all_reduce, "allreduce", "all_reduce", "reduction, result on all ranks", true, false, false,
     true},
    {reduce, "reduce", "reduce", "reduction, result on the root", true, true, false, true},
    {broadcast, "broadcast", "broadcast", "root's data to all", false, true, false, true},
    {all_gather, "allgather", "all_gather", "a block of each rank to all", false, false, false,
     true},
    {reduce_scatter, "reducescatter", "reduce_scatter", "reduction, a block of it on each rank",
     true, false, false, true},
    {all_to_all, "alltoall", "all_to_all", "a block from each rank to each", false, false, false,
     true},
    {gather, "gather", "gather", "a block of each rank to the root", false, true, false, true},
    {scatter, "scatter", "scatter", "a block of the root to each rank", false, true, false, true},
    {barrier, "barrier", "barrier", "all ranks wait for all", false, false, false, false},
    {all_gather_v, "allgatherv", "all_gather_v", "allgather, blocks of unequal length", false,
     false, true, true},
    {reduce_scatter_v, "reducescatterv", "reduce_scatter_v",
     "reducescatter, blocks of unequal length", true, false, true, true},
    {all_to_all_v, "alltoallv", "all_to_all_v", "alltoall, blocks of unequal length", false, false,
     true, true},
    {gather_v, "gatherv", "gather_v", "gather, blocks of unequal length", false, true, true, true},
    {scatter_v, "scatterv", "scatter_v", "scatter, blocks of unequal length", false, true, true,
     true},
    {send_recv, "sendrecv", "send", "ring: each rank sends to the next", false, false, false,
     false},
    {ping_pong, "pingpong", "send", "ranks 0 and 1, one way", false, false, false, false},
    {startup, "startup", "", "making and ending communicators", false, false, false, false},
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
  switch (operation) {
    case all_reduce:
      return 2 * share;
    case all_gather:
    case reduce_scatter:
    case all_to_all:
    case gather:
    case scatter:
    case all_gather_v:
    case reduce_scatter_v:
    case all_to_all_v:
    case gather_v:
    case scatter_v:
      return share;
    default:
      return 1;
  }
}

Layout layout(Operation operation, size_t bytes, size_t element_bytes, const Place& place) {
  const auto n = static_cast<size_t>(place.ranks), rank = static_cast<size_t>(place.rank);
  const bool at_root = place.rank == place.root;
  Layout result;
  if (operation == barrier || operation == startup) return result;
  result.elements = bytes == 0 ? 0 : std::max<size_t>(1, bytes / element_bytes);
  const size_t all = result.elements;
  switch (operation) {
    case all_reduce:
    case send_recv:
      result.count = result.send = result.recv = all;
      break;
    case ping_pong:
      result.count = result.send = result.recv = all;
      break;
    case reduce:
      result.count = result.send = all;
      result.recv = at_root ? all : 0;
      break;
    case broadcast:
      result.count = result.recv = all;
      result.send = at_root ? all : 0;
      break;
    default:
      break;
  }
  const bool blocks = result.count == 0 && all > 0;
  if (blocks && !info(operation).varied) {
    result.count = std::max<size_t>(1, all / n);
    result.elements = result.count * n;
    result.own = rank * result.count;
  } else if (blocks) {
    share_out(result, n, operation == all_to_all_v ? rank : 0);
    result.count = result.counts[rank];
    result.own = result.displacements[rank];
  } else if (info(operation).varied) {
    result.counts.assign(n, 0);
    result.displacements.assign(n, 0);
  }
  const size_t total = result.elements, own = result.count;
  switch (operation) {
    case all_gather:
    case all_gather_v:
      result.send = own;
      result.recv = total;
      break;
    case reduce_scatter:
    case reduce_scatter_v:
      result.send = total;
      result.recv = own;
      break;
    case all_to_all:
    case all_to_all_v:
      result.send = result.recv = total;
      break;
    case gather:
    case gather_v:
      result.send = own;
      result.recv = at_root ? total : 0;
      break;
    case scatter:
    case scatter_v:
      result.send = at_root ? total : 0;
      result.recv = own;
      break;
    default:
      break;
  }
  result.bytes = result.elements * element_bytes;
  return result;
}

}  // namespace hcomm::bench
