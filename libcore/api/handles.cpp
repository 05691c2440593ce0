// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/log.h"

namespace hcomm::api {

namespace {

thread_local std::string t_last_text;
std::atomic<uint64_t> g_serial{0};

// The process's one Runtime. Never deleted: other threads may still be in it at exit; hubs are
// ended in order by the exit handler, so that ranks that still run do not take our exit for a
// death.
std::mutex g_mutex;
comm::Runtime* g_runtime = nullptr;

void end_hubs() {
  const std::lock_guard lock(g_mutex);
  if (g_runtime != nullptr && g_runtime->of_this_process()) g_runtime->end_hubs();
}

comm::Runtime* make_runtime() {
  auto* made = new comm::Runtime();  // sets up the log
  for (const std::string& line : unknown_settings(process_environment()))
    log(LogLevel::warn, "{}", line);
  static const bool registered = std::atexit(end_hubs) == 0;
  (void)registered;
  return made;
}

}  // namespace

uint64_t next_serial() { return ++g_serial; }

comm::Runtime& runtime() {
  const std::lock_guard lock(g_mutex);
  // A forked child has only the thread that forked: it makes a Runtime of its own and leaves the
  // parent's alone.
  if (g_runtime == nullptr || !g_runtime->of_this_process()) g_runtime = make_runtime();
  return *g_runtime;
}

hcommResult_t result_of(Code code) {
  switch (code) {
    case Code::ok: return hcommSuccess;
    case Code::invalid_argument: return hcommInvalidArgument;
    case Code::invalid_usage: return hcommInvalidUsage;
    case Code::unavailable: return hcommSystemError;
    case Code::timeout: return hcommTimeout;
    case Code::peer_failed: return hcommRemoteError;
    case Code::aborted: return hcommAborted;
    case Code::unsupported: return hcommUnsupported;
    case Code::system: return hcommSystemError;
    case Code::internal: return hcommInternalError;
  }
  return hcommInternalError;
}

void remember(std::string text) { t_last_text = std::move(text); }
const std::string& last_text() { return t_last_text; }

hcommResult_t refuse(Code code, std::string text) {
  log(LogLevel::info, "{}", text);
  remember(std::move(text));
  return result_of(code);
}

hcommResult_t caught(const char* call) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return refuse(error.code(), fmt::format("{}: {}", call, error.text()));
  } catch (const std::bad_alloc&) {
    return refuse(Code::system, fmt::format("{}: out of memory", call));
  } catch (const std::exception& error) {
    return refuse(Code::internal, fmt::format("{}: {}", call, error.what()));
  } catch (...) {
    return hcommInternalError;
  }
}

namespace {

template <typename Handle>
hcommResult_t refuse_any(const char* call, const char* argument, const char* what, Handle handle) {
  if (handle == nullptr)
    return refuse(Code::invalid_argument, fmt::format("{}: {} is NULL", call, argument));
  if (handle->magic != std::remove_pointer_t<Handle>::kAlive)
    return refuse(Code::invalid_argument,
                  fmt::format("{}: {} is no {}, or was destroyed", call, argument, what));
  return refuse(Code::invalid_usage,
                fmt::format("{}: this process was forked after the {} was made; make a new one",
                            call, what));
}

}  // namespace

hcommResult_t refuse_handle(const char* call, hcommComm_t comm) {
  if (unready(comm)) {
    const hcommResult_t result = comm->joining->result();
    if (result == hcommInProgress || result == hcommSuccess)
      return refuse(Code::invalid_usage,
                    fmt::format("{}: the communicator is not ready (blocking=0): call "
                                "hcommCommGetAsyncError until it tells other than hcommInProgress",
                                call));
    remember(fmt::format("{}: {}", call, comm->joining->text()));
    return result;
  }
  return refuse_any(call, "comm", "communicator", comm);
}
hcommResult_t refuse_finalized(const char* call, hcommComm_t comm) {
  return refuse(Code::invalid_usage,
                fmt::format("{}: communicator {} is finalized", call, comm->name));
}
hcommResult_t refuse_in_group(const char* call) {
  return refuse(Code::invalid_usage,
                fmt::format("{}: the open group splits or shrinks this communicator; call "
                            "hcommGroupEnd first",
                            call));
}
hcommResult_t refuse_handle(const char* call, hcommStream_t stream) {
  return refuse_any(call, "stream", "stream", stream);
}
hcommResult_t refuse_handle(const char* call, hcommEvent_t event) {
  return refuse_any(call, "event", "event", event);
}

bool alive(hcommStream_t stream) {
  return stream != nullptr && stream->magic == hcommStream::kAlive &&
         stream->generation == process_generation();
}

bool alive(hcommEvent_t event) {
  return event != nullptr && event->magic == hcommEvent::kAlive &&
         event->generation == process_generation();
}

}  // namespace hcomm::api
