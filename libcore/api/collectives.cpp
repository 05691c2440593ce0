// SPDX-License-Identifier: Apache-2.0
// The collectives of hcomm.h: each becomes a Call, is checked, and is submitted.
#include "api/check.h"
#include "api/group.h"
#include "api/handles.h"

using hcomm::comm::Call;
using hcomm::schedule::Collective;
using namespace hcomm::api;

namespace {

// The last call of this thread that was found right. It is right again on that communicator: only
// arrays behind pointers change, and operators of one's own go, and such calls are not kept.
struct Checked {
  uint64_t communicator = 0;
  Arguments asked;
  Call call;

  bool holds(const Arguments& arguments, hcommComm_t comm) const {
    return communicator == comm->serial && asked == arguments;
  }
  void keep(const Arguments& arguments, hcommComm_t comm, const Call& checked) {
    communicator = arguments.call.varied || arguments.op >= hcommNumOps ? 0 : comm->serial;
    asked = arguments;
    call = checked;
  }
};
thread_local constinit Checked t_checked;

hcommResult_t refuse_call(const char* what, hcommComm_t comm, std::string wrong) {
  wrong =
      fmt::format("{} on rank {} of {}: {}", what, comm->communicator->rank(), comm->name, wrong);
  comm->communicator->refuse(
      {.code = hcomm::Code::invalid_argument, .operation = what, .text = wrong});
  return refuse(hcomm::Code::invalid_argument, std::move(wrong));
}

[[gnu::noinline]] hcommResult_t check_and_submit(const char* what, const Arguments& asked,
                                                 hcommComm_t comm, hcommStream_t stream) {
  hcommResult_t result = hcommSuccess;
  Arguments arguments = asked;
  if (!alive(comm)) {
    result = refuse_handle(what, comm);
  } else if (stream != nullptr && !alive(stream)) {
    result = refuse_handle(what, stream);
  } else if (comm->finalized) {
    result = refuse_finalized(what, comm);
  } else if (std::string wrong = check(arguments, comm); !wrong.empty()) {
    result = refuse_call(what, comm, std::move(wrong));
  } else {
    t_checked.keep(asked, comm, arguments.call);
    return submit(comm, stream, arguments.call);
  }
  if (in_group()) group().note(result);
  return result;
}

hcommResult_t run(const char* what, const Arguments& asked, hcommComm_t comm,
                  hcommStream_t stream) {
  return guarded(what, [&] {
    if (alive(comm) && !comm->finalized && stream == nullptr && t_checked.holds(asked, comm))
        [[likely]]
      return submit(comm, stream, t_checked.call);
    return check_and_submit(what, asked, comm, stream);
  });
}

Arguments of(Collective collective, const void* send, void* recv, size_t count, int type) {
  Arguments arguments;
  arguments.call.collective = collective;
  arguments.call.send = send;
  arguments.call.recv = recv;
  arguments.call.count = count;
  arguments.type = type;
  return arguments;
}

hcommResult_t missing(const char* what, const char* argument) {
  const hcommResult_t result =
      refuse(hcomm::Code::invalid_argument, fmt::format("{}: {} is NULL", what, argument));
  if (in_group()) group().note(result);
  return result;
}

bool is_root(hcommComm_t comm, int root) {
  return alive(comm) && static_cast<int64_t>(comm->communicator->rank()) == root;
}

}  // namespace

extern "C" {

hcommResult_t hcommAllReduce(const void* send, void* recv, size_t count, hcommDataType_t type,
                             hcommRedOp_t op, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::all_reduce, send, recv, count, type);
  arguments.op = op;
  return run("hcommAllReduce", arguments, comm, stream);
}

hcommResult_t hcommReduce(const void* send, void* recv, size_t count, hcommDataType_t type,
                          hcommRedOp_t op, int root, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::reduce, send, recv, count, type);
  arguments.op = op;
  arguments.root = root;
  return run("hcommReduce", arguments, comm, stream);
}

hcommResult_t hcommBroadcast(const void* send, void* recv, size_t count, hcommDataType_t type,
                             int root, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::broadcast, send, recv, count, type);
  arguments.root = root;
  return run("hcommBroadcast", arguments, comm, stream);
}

hcommResult_t hcommAllGather(const void* send, void* recv, size_t count, hcommDataType_t type,
                             hcommComm_t comm, hcommStream_t stream) {
  return run("hcommAllGather", of(Collective::all_gather, send, recv, count, type), comm, stream);
}

hcommResult_t hcommReduceScatter(const void* send, void* recv, size_t count, hcommDataType_t type,
                                 hcommRedOp_t op, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::reduce_scatter, send, recv, count, type);
  arguments.op = op;
  return run("hcommReduceScatter", arguments, comm, stream);
}

hcommResult_t hcommAllToAll(const void* send, void* recv, size_t count, hcommDataType_t type,
                            hcommComm_t comm, hcommStream_t stream) {
  return run("hcommAllToAll", of(Collective::all_to_all, send, recv, count, type), comm, stream);
}

hcommResult_t hcommGather(const void* send, void* recv, size_t count, hcommDataType_t type,
                          int root, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::gather, send, recv, count, type);
  arguments.root = root;
  return run("hcommGather", arguments, comm, stream);
}

hcommResult_t hcommScatter(const void* send, void* recv, size_t count, hcommDataType_t type,
                           int root, hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::scatter, send, recv, count, type);
  arguments.root = root;
  return run("hcommScatter", arguments, comm, stream);
}

hcommResult_t hcommBarrier(hcommComm_t comm, hcommStream_t stream) {
  return run("hcommBarrier", of(Collective::barrier, nullptr, nullptr, 0, hcommUint8), comm,
             stream);
}

hcommResult_t hcommAllGatherV(const void* send, void* recv, const size_t* counts,
                              const size_t* displs, hcommDataType_t type, hcommComm_t comm,
                              hcommStream_t stream) {
  if (counts == nullptr) return missing("hcommAllGatherV", "counts");
  Arguments arguments = of(Collective::all_gather, send, recv, 0, type);
  arguments.call.varied = true;
  arguments.call.recv_blocks = {counts, displs};
  if (alive(comm)) arguments.call.count = counts[comm->communicator->rank()];
  return run("hcommAllGatherV", arguments, comm, stream);
}

hcommResult_t hcommReduceScatterV(const void* send, void* recv, const size_t* counts,
                                  const size_t* displs, hcommDataType_t type, hcommRedOp_t op,
                                  hcommComm_t comm, hcommStream_t stream) {
  if (counts == nullptr) return missing("hcommReduceScatterV", "counts");
  Arguments arguments = of(Collective::reduce_scatter, send, recv, 0, type);
  arguments.op = op;
  arguments.call.varied = true;
  arguments.call.send_blocks = {counts, displs};
  if (alive(comm)) arguments.call.count = counts[comm->communicator->rank()];
  return run("hcommReduceScatterV", arguments, comm, stream);
}

hcommResult_t hcommAllToAllV(const void* send, const size_t* sendcounts, const size_t* sdispls,
                             void* recv, const size_t* recvcounts, const size_t* rdispls,
                             hcommDataType_t type, hcommComm_t comm, hcommStream_t stream) {
  if (sendcounts == nullptr) return missing("hcommAllToAllV", "sendcounts");
  if (recvcounts == nullptr) return missing("hcommAllToAllV", "recvcounts");
  Arguments arguments = of(Collective::all_to_all, send, recv, 0, type);
  arguments.call.varied = true;
  arguments.call.send_blocks = {sendcounts, sdispls};
  arguments.call.recv_blocks = {recvcounts, rdispls};
  return run("hcommAllToAllV", arguments, comm, stream);
}

hcommResult_t hcommGatherV(const void* send, size_t sendcount, void* recv, const size_t* counts,
                           const size_t* displs, hcommDataType_t type, int root, hcommComm_t comm,
                           hcommStream_t stream) {
  if (is_root(comm, root) && counts == nullptr) return missing("hcommGatherV", "counts");
  Arguments arguments = of(Collective::gather, send, recv, sendcount, type);
  arguments.root = root;
  arguments.call.varied = true;
  if (is_root(comm, root)) arguments.call.recv_blocks = {counts, displs};
  return run("hcommGatherV", arguments, comm, stream);
}

hcommResult_t hcommScatterV(const void* send, const size_t* counts, const size_t* displs,
                            void* recv, size_t recvcount, hcommDataType_t type, int root,
                            hcommComm_t comm, hcommStream_t stream) {
  if (is_root(comm, root) && counts == nullptr) return missing("hcommScatterV", "counts");
  Arguments arguments = of(Collective::scatter, send, recv, recvcount, type);
  arguments.root = root;
  arguments.call.varied = true;
  if (is_root(comm, root)) arguments.call.send_blocks = {counts, displs};
  return run("hcommScatterV", arguments, comm, stream);
}

hcommResult_t hcommSend(const void* send, size_t count, hcommDataType_t type, int peer,
                        hcommComm_t comm, hcommStream_t stream) {
  Arguments arguments = of(Collective::point_to_point, send, nullptr, count, type);
  arguments.call.sending = true;
  arguments.root = peer;
  return run("hcommSend", arguments, comm, stream);
}

hcommResult_t hcommRecv(void* recv, size_t count, hcommDataType_t type, int peer, hcommComm_t comm,
                        hcommStream_t stream) {
  Arguments arguments = of(Collective::point_to_point, nullptr, recv, count, type);
  arguments.root = peer;
  return run("hcommRecv", arguments, comm, stream);
}

}  // extern "C"
