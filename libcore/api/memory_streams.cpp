// SPDX-License-Identifier: Apache-2.0
// Memory, streams, events, operators, and what would run.
#include <algorithm>
#include <cstring>

#include "api/group.h"
#include "api/handles.h"
#include "api/together.h"

using hcomm::Code;
using namespace hcomm::api;

namespace {

bool is_cpu(const char* device) {
  return device == nullptr || std::string_view(device) == "cpu";
}

hcommResult_t no_device(const char* call, const char* device) {
  return refuse(Code::unsupported,
                fmt::format("{}: device '{}' is not offered in this version; there is cpu", call,
                            device));
}

hcommResult_t bad(const char* call, const char* what) {
  return refuse(Code::invalid_argument, fmt::format("{}: {}", call, what));
}

}  // namespace

extern "C" {

hcommResult_t hcommMemAlloc(void** pointer, size_t bytes, const char* device) {
  return guarded("hcommMemAlloc", [&] {
    if (pointer == nullptr) return bad("hcommMemAlloc", "pointer is NULL");
    *pointer = nullptr;
    if (!is_cpu(device)) return no_device("hcommMemAlloc", device);
    if (bytes > 0) *pointer = runtime().memory().allocate(bytes);
    return hcommSuccess;
  });
}

hcommResult_t hcommMemFree(void* pointer) {
  return guarded("hcommMemFree", [&] {
    if (pointer == nullptr || runtime().memory().free(pointer)) return hcommSuccess;
    return refuse(Code::invalid_argument,
                  fmt::format("hcommMemFree: {} is not from hcommMemAlloc, or was freed", pointer));
  });
}

// Host memory needs no registration: what is registered is known, and makes nothing faster.
hcommResult_t hcommCommRegister(hcommComm_t comm, void* pointer, size_t bytes, void** handle) {
  return guarded("hcommCommRegister", [&] {
    if (!alive(comm)) return refuse_handle("hcommCommRegister", comm);
    if (handle == nullptr || pointer == nullptr || bytes == 0)
      return bad("hcommCommRegister", "pointer or handle is NULL, or bytes is 0");
    *handle = &comm->registrations.emplace_back(pointer, bytes);
    return hcommSuccess;
  });
}

hcommResult_t hcommCommDeregister(hcommComm_t comm, void* handle) {
  return guarded("hcommCommDeregister", [&] {
    if (!alive(comm)) return refuse_handle("hcommCommDeregister", comm);
    const size_t removed = comm->registrations.remove_if(
        [&](const std::pair<void*, size_t>& each) { return &each == handle; });
    if (removed == 1) return hcommSuccess;
    return bad("hcommCommDeregister", "handle is not from hcommCommRegister, or was deregistered");
  });
}

hcommResult_t hcommStreamCreate(hcommStream_t* stream, const char* device) {
  return guarded("hcommStreamCreate", [&] {
    if (stream == nullptr) return bad("hcommStreamCreate", "stream is NULL");
    if (!is_cpu(device)) return no_device("hcommStreamCreate", device);
    *stream = new hcommStream;
    return hcommSuccess;
  });
}

hcommResult_t hcommStreamWrap(hcommStream_t* stream, const char* device, void*) {
  return guarded("hcommStreamWrap", [&] {
    if (stream == nullptr) return bad("hcommStreamWrap", "stream is NULL");
    if (!is_cpu(device)) return no_device("hcommStreamWrap", device);
    return refuse(Code::unsupported, "hcommStreamWrap: the cpu has no streams to wrap; use "
                                     "hcommStreamCreate");
  });
}

hcommResult_t hcommStreamSynchronize(hcommStream_t stream) {
  return guarded("hcommStreamSynchronize", [&] {
    settle_all();
    if (stream == nullptr) return hcommSuccess;  // in order, in the calling thread: all is done
    if (!alive(stream)) return refuse_handle("hcommStreamSynchronize", stream);
    return result_of(stream->worker.synchronize());
  });
}

hcommResult_t hcommStreamQuery(hcommStream_t stream) {
  return guarded("hcommStreamQuery", [&] {
    if (stream == nullptr) return hcommSuccess;
    if (!alive(stream)) return refuse_handle("hcommStreamQuery", stream);
    if (any_underway()) progress();  // it may be behind that
    return stream->worker.idle() ? hcommSuccess : hcommInProgress;
  });
}

hcommResult_t hcommStreamDestroy(hcommStream_t stream) {
  return guarded("hcommStreamDestroy", [&] {
    if (!alive(stream)) return refuse_handle("hcommStreamDestroy", stream);
    settle_all();  // what the stream still has may be behind it
    delete stream;
    return hcommSuccess;
  });
}

hcommResult_t hcommEventCreate(hcommEvent_t* event) {
  return guarded("hcommEventCreate", [&] {
    if (event == nullptr) return bad("hcommEventCreate", "event is NULL");
    *event = new hcommEvent;
    return hcommSuccess;
  });
}

hcommResult_t hcommEventRecord(hcommEvent_t event, hcommStream_t stream) {
  return guarded("hcommEventRecord", [&] {
    if (!alive(event)) return refuse_handle("hcommEventRecord", event);
    if (stream != nullptr && !alive(stream)) return refuse_handle("hcommEventRecord", stream);
    if (stream == nullptr) settle_all();  // all else of NULL is done already
    event->event.record(stream == nullptr ? nullptr : stream->worker.mark());
    return hcommSuccess;
  });
}

hcommResult_t hcommStreamWaitEvent(hcommStream_t stream, hcommEvent_t event) {
  return guarded("hcommStreamWaitEvent", [&] {
    if (!alive(event)) return refuse_handle("hcommStreamWaitEvent", event);
    if (stream != nullptr && !alive(stream)) return refuse_handle("hcommStreamWaitEvent", stream);
    const auto mark = event->event.last();
    if (stream != nullptr) {
      stream->worker.wait_for(mark);
    } else if (mark != nullptr) {
      settle_all();
      mark->wait();
    }
    return hcommSuccess;
  });
}

hcommResult_t hcommEventQuery(hcommEvent_t event) {
  return guarded("hcommEventQuery", [&] {
    if (!alive(event)) return refuse_handle("hcommEventQuery", event);
    if (any_underway()) progress();
    return event->event.done() ? hcommSuccess : hcommInProgress;
  });
}

hcommResult_t hcommEventDestroy(hcommEvent_t event) {
  return guarded("hcommEventDestroy", [&] {
    if (!alive(event)) return refuse_handle("hcommEventDestroy", event);
    delete event;
    return hcommSuccess;
  });
}

hcommResult_t hcommRedOpCreatePreMulSum(hcommRedOp_t* op, const void* scalar,
                                        hcommDataType_t datatype, hcommComm_t comm) {
  return guarded("hcommRedOpCreatePreMulSum", [&] {
    if (!alive(comm)) return refuse_handle("hcommRedOpCreatePreMulSum", comm);
    if (comm->finalized) return refuse_finalized("hcommRedOpCreatePreMulSum", comm);
    if (op == nullptr || scalar == nullptr)
      return bad("hcommRedOpCreatePreMulSum", "op or scalar is NULL");
    if (datatype < 0 || datatype >= hcommNumTypes)
      return bad("hcommRedOpCreatePreMulSum", "datatype is no type");
    auto& operators = comm->operators;
    auto free = std::find_if(operators.begin(), operators.end(),
                             [](const hcommComm::Operator& each) { return !each.used; });
    if (free == operators.end()) free = operators.insert(free, hcommComm::Operator{});
    free->used = true;
    free->type = static_cast<hcomm::Type>(datatype);
    std::memcpy(free->factor, scalar, size_of(free->type));
    *op = static_cast<hcommRedOp_t>(hcommNumOps + (free - operators.begin()));
    return hcommSuccess;
  });
}

hcommResult_t hcommRedOpDestroy(hcommRedOp_t op, hcommComm_t comm) {
  return guarded("hcommRedOpDestroy", [&] {
    if (!alive(comm)) return refuse_handle("hcommRedOpDestroy", comm);
    const int index = static_cast<int>(op) - hcommNumOps;
    if (index < 0 || static_cast<size_t>(index) >= comm->operators.size() ||
        !comm->operators[static_cast<size_t>(index)].used)
      return bad("hcommRedOpDestroy", "op was not made by hcommRedOpCreatePreMulSum");
    comm->operators[static_cast<size_t>(index)].used = false;
    return hcommSuccess;
  });
}

hcommResult_t hcommCommExplain(hcommComm_t comm, const char* name, size_t count,
                               hcommDataType_t type, char* text, size_t bytes) {
  return guarded("hcommCommExplain", [&] {
    if (!alive(comm)) return refuse_handle("hcommCommExplain", comm);
    if (name == nullptr || text == nullptr || bytes == 0 || type < 0 || type >= hcommNumTypes)
      return bad("hcommCommExplain", "name or text is NULL, bytes is 0, or type is no type");
    if (group().splits(comm)) return refuse_in_group("hcommCommExplain");
    hcomm::comm::Call call;
    call.type = static_cast<hcomm::Type>(type);
    call.count = count;
    std::string_view asked = name;
    call.varied = asked.ends_with("_v");
    if (call.varied) asked.remove_suffix(2);
    for (int i = 0; i < hcomm::schedule::kCollectives; i++) {
      call.collective = static_cast<hcomm::schedule::Collective>(i);
      if (hcomm::schedule::name(call.collective) != asked) continue;
      settle_all();
      const std::string found = comm->communicator->explain(call);
      const size_t length = std::min(bytes - 1, found.size());
      std::memcpy(text, found.data(), length);
      text[length] = '\0';
      return hcommSuccess;
    }
    return refuse(Code::invalid_argument,
                  fmt::format("hcommCommExplain: '{}' is no collective; e.g. all_reduce", name));
  });
}

}  // extern "C"
