// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/call.h"

namespace hcomm::bench {

namespace {

using enum Operation;

hcommResult_t run_ring(const Call& call, const Layout& layout, const Place& place) {
  const int next = (place.rank + 1) % place.ranks;
  const int before = (place.rank + place.ranks - 1) % place.ranks;
  hcommResult_t result = hcommGroupStart();
  if (result != hcommSuccess) return result;
  result = hcommSend(call.send, layout.count, call.type, next, call.comm, call.stream);
  const hcommResult_t received =
      hcommRecv(call.recv, layout.count, call.type, before, call.comm, call.stream);
  const hcommResult_t ended = hcommGroupEnd();
  return result != hcommSuccess ? result : received != hcommSuccess ? received : ended;
}

hcommResult_t run_ping_pong(const Call& call, const Layout& layout, const Place& place) {
  if (place.rank > 1) return hcommSuccess;
  const int peer = 1 - place.rank;
  const auto send = [&] {
    return hcommSend(call.send, layout.count, call.type, peer, call.comm, call.stream);
  };
  const auto receive = [&] {
    return hcommRecv(call.recv, layout.count, call.type, peer, call.comm, call.stream);
  };
  const hcommResult_t first = place.rank == 0 ? send() : receive();
  if (first != hcommSuccess) return first;
  return place.rank == 0 ? receive() : send();
}

}  // namespace

hcommResult_t run(const Call& c, const Layout& l, const Place& place) {
  const size_t* counts = l.counts.data();
  const size_t* at = l.displacements.data();
  const int root = place.root;
  switch (c.operation) {
    case all_reduce:
      return hcommAllReduce(c.send, c.recv, l.count, c.type, c.redop, c.comm, c.stream);
    case reduce:
      return hcommReduce(c.send, c.recv, l.count, c.type, c.redop, root, c.comm, c.stream);
    case broadcast:
      return hcommBroadcast(c.send, c.recv, l.count, c.type, root, c.comm, c.stream);
    case all_gather:
      return hcommAllGather(c.send, c.recv, l.count, c.type, c.comm, c.stream);
    case reduce_scatter:
      return hcommReduceScatter(c.send, c.recv, l.count, c.type, c.redop, c.comm, c.stream);
    case all_to_all:
      return hcommAllToAll(c.send, c.recv, l.count, c.type, c.comm, c.stream);
    case gather:
      return hcommGather(c.send, c.recv, l.count, c.type, root, c.comm, c.stream);
    case scatter:
      return hcommScatter(c.send, c.recv, l.count, c.type, root, c.comm, c.stream);
    case barrier:
      return hcommBarrier(c.comm, c.stream);
    case all_gather_v:
      return hcommAllGatherV(c.send, c.recv, counts, at, c.type, c.comm, c.stream);
    case reduce_scatter_v:
      return hcommReduceScatterV(c.send, c.recv, counts, at, c.type, c.redop, c.comm, c.stream);
    case all_to_all_v:
      return hcommAllToAllV(c.send, counts, at, c.recv, counts, at, c.type, c.comm, c.stream);
    case gather_v:
      return hcommGatherV(c.send, l.count, c.recv, counts, at, c.type, root, c.comm, c.stream);
    case scatter_v:
      return hcommScatterV(c.send, counts, at, c.recv, l.count, c.type, root, c.comm, c.stream);
    case send_recv:
      return run_ring(c, l, place);
    case ping_pong:
      return run_ping_pong(c, l, place);
    case startup:
      return hcommSuccess;
  }
  return hcommInvalidArgument;
}

}  // namespace hcomm::bench
