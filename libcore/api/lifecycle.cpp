// SPDX-License-Identifier: Apache-2.0
// Versions, errors, and the life of communicators.
#include <cstring>

#include "api/group.h"
#include "api/handles.h"
#include "api/together.h"
#include "base/process.h"
#include "comm/join.h"

using hcomm::Code;
using hcomm::Config;
using hcomm::comm::Communicator;
using namespace hcomm::api;

namespace {

void adopt(hcommComm& handle, std::unique_ptr<Communicator> communicator) {
  handle.name = communicator->config().name;
  handle.device = communicator->config().device;
  handle.communicator = std::move(communicator);
}

hcommComm_t handle_of(std::unique_ptr<Communicator> communicator) {
  auto handle = std::make_unique<hcommComm>();
  adopt(*handle, std::move(communicator));
  return handle.release();
}

// In a group, later, beside the others of the group; else now.
template <typename Setup>
hcommResult_t now_or_at_group_end(const char* call, hcommComm_t parent, Setup setup) {
  if (!in_group()) {
    settle_all();
    return guarded(call, setup);
  }
  group().add_setup({parent, [call, setup] { return guarded(call, setup); }});
  return hcommSuccess;
}

// Makes a communicator as now_or_at_group_end, or, with blocking = 0, in the background.
template <typename Make>
hcommResult_t init(const char* call, hcommComm_t* comm, const hcommConfig_t* given, Make make) {
  if (given == nullptr || given->blocking != 0)
    return now_or_at_group_end(call, nullptr, [=] {
      *comm = handle_of(make());
      return hcommSuccess;
    });
  auto handle = std::make_unique<hcommComm>();
  handle->joining = Joining::start(call, make);
  *comm = handle.release();
  return hcommInProgress;
}

// Whether it is ready by now; else hcommInProgress, or why it failed.
hcommResult_t settle(hcommComm_t comm) {
  const hcommResult_t result = comm->joining->result();
  if (result == hcommSuccess) {
    adopt(*comm, comm->joining->take());
    comm->joining = nullptr;
  } else if (result != hcommInProgress) {
    remember(comm->joining->text());
  }
  return result;
}

hcommResult_t init_rank(const char* call, hcommComm_t* comm, int nranks, const hcommUniqueId& id,
                        int rank, const hcommConfig_t* given) {
  return guarded(call, [&] {
    if (comm == nullptr)
      return refuse(Code::invalid_argument, fmt::format("{}: comm is NULL", call));
    *comm = nullptr;
    if (nranks < 1 || rank < 0 || rank >= nranks)
      return refuse(Code::invalid_argument,
                    fmt::format("{}: rank {} of {} ranks; rank must be 0..{}", call, rank, nranks,
                                nranks - 1));
    const Config config = configured(runtime().config(), given);
    hcomm::comm::UniqueId bytes;
    std::memcpy(bytes.bytes.data(), id.internal, sizeof id.internal);
    return init(call, comm, given, [=] {
      return hcomm::comm::join_by_id(runtime(), bytes, static_cast<uint32_t>(rank),
                                     static_cast<uint32_t>(nranks), config);
    });
  });
}

// Refuses what cannot be used, else runs the body.
template <typename Body>
hcommResult_t with(const char* call, hcommComm_t comm, Body body) {
  return guarded(call, [&] { return alive(comm) ? body() : refuse_handle(call, comm); });
}

// A child is made while the caller waits.
void check_blocks(const hcommConfig_t* given) {
  if (given != nullptr && given->blocking == 0)
    hcomm::fail(Code::unsupported,
                "hcommConfig_t.blocking=0 is for init; split, shrink and virtual block");
}

Config configured_child(const Communicator& parent, const hcommConfig_t* given) {
  check_blocks(given);
  return configured(parent.config(), given);
}

// Makes a communicator out of another one, in the turn of this call.
template <typename Make>
hcommResult_t make_child(const char* call, hcommComm_t comm, hcommComm_t* newcomm, Make make) {
  using hcomm::comm::Turn;
  if (comm->finalized) return refuse_finalized(call, comm);
  auto taken =
      std::make_shared<std::unique_ptr<Turn>>(std::make_unique<Turn>(*comm->communicator));
  return now_or_at_group_end(call, comm, [=] {
    const std::unique_ptr<Turn> turn = std::move(*taken);  // ends with this
    turn->enter();
    std::unique_ptr<Communicator> child = make(*comm->communicator);
    if (child) *newcomm = handle_of(std::move(child));
    return hcommSuccess;
  });
}

template <size_t N>
void put(char (&to)[N], const std::string& text) {
  const size_t bytes = std::min(N - 1, text.size());
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

void fill(hcommErrorInfo_t& info, const hcomm::comm::Fault& fault, hcommComm_t comm) {
  info.code = result_of(fault.code);
  info.rank = static_cast<int>(comm->communicator->rank());
  info.peer = fault.peer;
  info.sequence = fault.sequence;
  info.bytes = fault.bytes;
  put(info.communicator, comm->name);
  put(info.operation, fault.operation);
  put(info.transport, fault.transport);
  put(info.host, fault.host.empty() ? hcomm::host_name() : fault.host);
  put(info.text, fault.text);
}

}  // namespace

extern "C" {

hcommResult_t hcommGetVersion(int* version) {
  if (version == nullptr) return refuse(Code::invalid_argument, "hcommGetVersion: version is NULL");
  *version = HCOMM_VERSION_CODE;
  return hcommSuccess;
}

const char* hcommGetErrorString(hcommResult_t result) {
  static constexpr const char* kTexts[hcommNumResults] = {
      "no error", "device error", "system error", "internal error", "invalid argument",
      "invalid usage", "a peer failed", "in progress", "timeout", "aborted", "unsupported"};
  if (result < 0 || result >= hcommNumResults) return "unknown result";
  return kTexts[result];
}

const char* hcommGetLastError(hcommComm_t comm) {
  thread_local std::string text;
  if (unready(comm)) return (text = comm->joining->text()).c_str();
  if (!alive(comm)) return last_text().c_str();
  text = comm->communicator->fault().text;
  return text.c_str();
}

hcommResult_t hcommCommGetErrorInfo(hcommComm_t comm, hcommErrorInfo_t* info) {
  return with("hcommCommGetErrorInfo", comm, [&] {
    if (info == nullptr || info->size != sizeof *info)
      return refuse(Code::invalid_argument,
                    fmt::format("hcommCommGetErrorInfo: info->size must be {}", sizeof *info));
    fill(*info, comm->communicator->fault(), comm);
    return hcommSuccess;
  });
}

hcommResult_t hcommGetUniqueId(hcommUniqueId* id) {
  return guarded("hcommGetUniqueId", [&] {
    if (id == nullptr) return refuse(Code::invalid_argument, "hcommGetUniqueId: id is NULL");
    const hcomm::comm::UniqueId made = hcomm::comm::new_id(runtime());
    std::memcpy(id->internal, made.bytes.data(), sizeof id->internal);
    return hcommSuccess;
  });
}

hcommResult_t hcommCommInitRank(hcommComm_t* comm, int nranks, hcommUniqueId id, int rank) {
  return init_rank("hcommCommInitRank", comm, nranks, id, rank, nullptr);
}

hcommResult_t hcommCommInitRankConfig(hcommComm_t* comm, int nranks, hcommUniqueId id, int rank,
                                      const hcommConfig_t* config) {
  return init_rank("hcommCommInitRankConfig", comm, nranks, id, rank, config);
}

hcommResult_t hcommCommInitWorld(hcommComm_t* comm, const hcommConfig_t* config) {
  return guarded("hcommCommInitWorld", [&] {
    if (comm == nullptr) return refuse(Code::invalid_argument, "hcommCommInitWorld: comm is NULL");
    *comm = nullptr;
    const Config settings = configured(runtime().config(), config);
    return init("hcommCommInitWorld", comm, config,
                [=] { return hcomm::comm::join_world(runtime(), settings); });
  });
}

hcommResult_t hcommCommInitAll(hcommComm_t* comms, int ndev, const char* const* devices) {
  return guarded("hcommCommInitAll", [&] {
    if (comms == nullptr || ndev < 1)
      return refuse(Code::invalid_argument,
                    fmt::format("hcommCommInitAll: comms is NULL or ndev={} < 1", ndev));
    hcommUniqueId id;
    if (const hcommResult_t made = hcommGetUniqueId(&id); made != hcommSuccess) return made;
    std::fill(comms, comms + ndev, nullptr);
    std::vector<hcommConfig_t> configs(static_cast<size_t>(ndev), HCOMM_CONFIG_INITIALIZER);
    hcommGroupStart();
    for (int rank = 0; rank < ndev; rank++) {
      hcommConfig_t& config = configs[static_cast<size_t>(rank)];
      config.device = devices == nullptr ? nullptr : devices[rank];
      const hcommResult_t added =
          hcommCommInitRankConfig(&comms[rank], ndev, id, rank, &config);
      if (added != hcommSuccess) group().note(added);
    }
    const hcommResult_t result = hcommGroupEnd();
    if (result == hcommSuccess || in_group()) return result;
    const std::string text = last_text();
    for (int rank = 0; rank < ndev; rank++) hcommCommDestroy(comms[rank]);
    std::fill(comms, comms + ndev, nullptr);
    remember(text);
    return result;
  });
}

hcommResult_t hcommCommSplit(hcommComm_t comm, int color, int key, hcommComm_t* newcomm,
                             const hcommConfig_t* given) {
  return with("hcommCommSplit", comm, [&] {
    if (newcomm == nullptr || color < HCOMM_SPLIT_NOCOLOR)
      return refuse(Code::invalid_argument,
                    fmt::format("hcommCommSplit: newcomm is NULL, or color={} is below {}", color,
                                HCOMM_SPLIT_NOCOLOR));
    *newcomm = nullptr;
    const Config config = configured_child(*comm->communicator, given);
    return make_child("hcommCommSplit", comm, newcomm, [=](Communicator& parent) {
      return parent.split(color, key, config);
    });
  });
}

hcommResult_t hcommCommVirtual(hcommComm_t comm, const char* name, hcommComm_t* newcomm,
                               const hcommConfig_t* given) {
  return with("hcommCommVirtual", comm, [&] {
    if (newcomm == nullptr || name == nullptr)
      return refuse(Code::invalid_argument, "hcommCommVirtual: newcomm or name is NULL");
    *newcomm = nullptr;
    check_blocks(given);
    const VirtualSettings settings =
        configured_virtual(comm->communicator->config(), name, given);
    return make_child("hcommCommVirtual", comm, newcomm, [=](Communicator& parent) {
      return parent.make_virtual(settings.priority, settings.config);
    });
  });
}

hcommResult_t hcommCommShrink(hcommComm_t comm, const int* exclude, int excluded,
                              hcommComm_t* newcomm, const hcommConfig_t* given, int flags) {
  return with("hcommCommShrink", comm, [&] {
    if (newcomm == nullptr || excluded < 0 || (exclude == nullptr && excluded > 0) ||
        (flags != HCOMM_SHRINK_DEFAULT && flags != HCOMM_SHRINK_ABORT))
      return refuse(Code::invalid_argument,
                    fmt::format("hcommCommShrink: newcomm or exclude is NULL, excluded={} is below "
                                "0, or flags={} is no HCOMM_SHRINK_ value", excluded, flags));
    *newcomm = nullptr;
    const Communicator& members = *comm->communicator;
    std::vector<uint32_t> out;
    for (int i = 0; i < excluded; i++) {
      const auto peer = static_cast<uint32_t>(exclude[i]);
      if (peer >= members.ranks() || peer == members.rank())
        return refuse(Code::invalid_argument,
                      fmt::format("hcommCommShrink: exclude[{}]={} on rank {} of {}: it must be "
                                  "another rank of the communicator; who is excluded does not call",
                                  i, exclude[i], members.rank(), members.ranks()));
      out.push_back(peer);
    }
    const Config config = configured_child(members, given);
    if (flags == HCOMM_SHRINK_ABORT) comm->communicator->abort("hcommCommShrink");
    return make_child("hcommCommShrink", comm, newcomm, [=](Communicator& parent) {
      return parent.shrink(out, config);
    });
  });
}

hcommResult_t hcommCommFinalize(hcommComm_t comm) {
  return with("hcommCommFinalize", comm, [&] {
    if (comm->finalized) return hcommSuccess;
    if (group().splits(comm)) return refuse_in_group("hcommCommFinalize");
    settle_all();
    const Code code = comm->communicator->finalize();
    comm->finalized = true;
    return code == Code::aborted ? hcommSuccess : result_of(code);
  });
}

hcommResult_t hcommCommDestroy(hcommComm_t comm) {
  if (comm == nullptr) return hcommSuccess;
  if (unready(comm)) {
    settle_all();
    comm->joining->wait();
    if (const hcommResult_t result = settle(comm); result != hcommSuccess) {
      delete comm;
      return result == hcommAborted ? hcommSuccess : result;
    }
  }
  return with("hcommCommDestroy", comm, [&] {  // a parent's is refused: nothing of it is touched
    if (group().splits(comm)) return refuse_in_group("hcommCommDestroy");
    const hcommResult_t result = hcommCommFinalize(comm);
    delete comm;
    return result;
  });
}

hcommResult_t hcommCommAbort(hcommComm_t comm) {
  if (unready(comm)) {
    comm->joining->abandon();
    return hcommSuccess;
  }
  return with("hcommCommAbort", comm, [&] {
    comm->communicator->abort("hcommCommAbort");
    return hcommSuccess;
  });
}

hcommResult_t hcommCommRevoke(hcommComm_t comm) {
  return with("hcommCommRevoke", comm, [&] {
    comm->communicator->abort("hcommCommRevoke");
    return hcommSuccess;
  });
}

hcommResult_t hcommCommGetAsyncError(hcommComm_t comm, hcommResult_t* error) {
  if (error != nullptr && unready(comm)) {
    *error = settle(comm);
    return hcommSuccess;
  }
  return with("hcommCommGetAsyncError", comm, [&] {
    if (error == nullptr)
      return refuse(Code::invalid_argument, "hcommCommGetAsyncError: error is NULL");
    const Communicator& communicator = *comm->communicator;
    *error = communicator.broken() ? result_of(communicator.fault().code)
             : communicator.idle() ? hcommSuccess
                                   : hcommInProgress;
    return hcommSuccess;
  });
}

hcommResult_t hcommCommCount(hcommComm_t comm, int* count) {
  return with("hcommCommCount", comm, [&] {
    if (count == nullptr) return refuse(Code::invalid_argument, "hcommCommCount: count is NULL");
    *count = static_cast<int>(comm->communicator->ranks());
    return hcommSuccess;
  });
}

hcommResult_t hcommCommUserRank(hcommComm_t comm, int* rank) {
  return with("hcommCommUserRank", comm, [&] {
    if (rank == nullptr) return refuse(Code::invalid_argument, "hcommCommUserRank: rank is NULL");
    *rank = static_cast<int>(comm->communicator->rank());
    return hcommSuccess;
  });
}

hcommResult_t hcommCommDevice(hcommComm_t comm, const char** device) {
  return with("hcommCommDevice", comm, [&] {
    if (device == nullptr)
      return refuse(Code::invalid_argument, "hcommCommDevice: device is NULL");
    *device = comm->device.c_str();
    return hcommSuccess;
  });
}

hcommResult_t hcommCommName(hcommComm_t comm, const char** name) {
  return with("hcommCommName", comm, [&] {
    if (name == nullptr) return refuse(Code::invalid_argument, "hcommCommName: name is NULL");
    *name = comm->name.c_str();
    return hcommSuccess;
  });
}

}  // extern "C"
