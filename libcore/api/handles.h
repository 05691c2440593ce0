// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of hcomm.h are, and how every entry point runs: arguments are checked, an
// exception becomes a result and a text, a handle of another process is refused. The only place
// that catches exceptions. Private to api/.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/joining.h"
#include "comm/communicator.h"
#include "comm/runtime.h"
#include "engine/stream.h"
#include "hcomm/hcomm.h"

namespace hcomm::api {
// Of a handle, as long as it lives: who keeps the handle keeps a weak one, and asks that instead of
// memory that may be gone, or another handle's.
using Life = std::shared_ptr<const char>;
uint64_t next_serial();  // 1 and on
}  // namespace hcomm::api

struct hcommComm {
  static constexpr uint64_t kAlive = 0x6d6d6f6368636f6d;
  uint64_t magic = kAlive;
  const hcomm::api::Life life = std::make_shared<char>();
  const uint64_t serial = hcomm::api::next_serial();  // of no other one
  std::unique_ptr<hcomm::comm::Communicator> communicator;  // null while, or where, joining is not
  std::shared_ptr<hcomm::api::Joining> joining;             // blocking = 0: until it has succeeded
  std::string name, device;  // stay valid for the queries
  bool finalized = false;
  struct Operator {
    bool used = false;
    hcomm::Type type{};
    unsigned char factor[8] = {};
  };
  std::vector<Operator> operators;  // of hcommRedOpCreatePreMulSum
  std::list<std::pair<void*, size_t>> registrations;  // their addresses are the handles
  ~hcommComm() { magic = 0; }
};

struct hcommStream {
  static constexpr uint64_t kAlive = 0x6d61657274736d6d;
  uint64_t magic = kAlive;
  const hcomm::api::Life life = std::make_shared<char>();
  uint32_t generation = hcomm::process_generation();
  hcomm::engine::Stream worker;
  ~hcommStream() { magic = 0; }
};

struct hcommEvent {
  static constexpr uint64_t kAlive = 0x746e657665636f6d;
  uint64_t magic = kAlive;
  uint32_t generation = hcomm::process_generation();
  hcomm::engine::Event event;
  ~hcommEvent() { magic = 0; }
};

namespace hcomm::api {

hcommResult_t result_of(Code code);
// Remembers the text for hcommGetLastError(NULL) of this thread.
hcommResult_t refuse(Code code, std::string text);
void remember(std::string text);
const std::string& last_text();
// Turns the exception in flight into a result.
hcommResult_t caught(const char* call) noexcept;

template <typename Body>
hcommResult_t guarded(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return caught(call);
  }
}

comm::Runtime& runtime();

// Of this process, not destroyed, and ready.
inline bool alive(hcommComm_t comm) {
  return comm != nullptr && comm->magic == hcommComm::kAlive && comm->communicator != nullptr &&
         comm->communicator->of_this_process();
}
// Not ready: of this process, not destroyed, and joining in the background, or failed to join.
inline bool unready(hcommComm_t comm) {
  return comm != nullptr && comm->magic == hcommComm::kAlive && comm->joining != nullptr &&
         comm->joining->of_this_process();
}
bool alive(hcommStream_t stream);
bool alive(hcommEvent_t event);
// Why a handle that is not alive cannot be used.
hcommResult_t refuse_handle(const char* call, hcommComm_t comm);
hcommResult_t refuse_handle(const char* call, hcommStream_t stream);
hcommResult_t refuse_handle(const char* call, hcommEvent_t event);

hcommResult_t refuse_finalized(const char* call, hcommComm_t comm);
// Of a communicator that the open group splits or shrinks.
hcommResult_t refuse_in_group(const char* call);

// The settings of a communicator: the process's, with what `config` (may be NULL) says. Throws.
Config configured(const Config& base, const hcommConfig_t* config);
struct VirtualSettings {
  Config config;
  int priority = 0;
};
VirtualSettings configured_virtual(const Config& base, const char* name,
                                   const hcommConfig_t* config);

// Runs, groups or queues a checked call.
hcommResult_t submit(hcommComm_t comm, hcommStream_t stream, const comm::Call& call);
bool in_group();  // inside hcommGroupStart

}  // namespace hcomm::api
