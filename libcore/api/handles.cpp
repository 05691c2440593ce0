// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

#include <cstdlib>
#include <mutex>
#include <new>

#include "base/log.h"

namespace hcomm::api {

namespace {

thread_local std::string t_last_text;

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
  for (const std::string& line : unknown_settings(process_environment()))
    log(LogLevel::warn, "{}", line);
  auto* made = new comm::Runtime();
  static const bool registered = std::atexit(end_hubs) == 0;
  (void)registered;
  return made;
}

}  // namespace

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

hcommResult_t refuse_handle(const char* call, hcommComm_t comm) {
  if (comm == nullptr)
    return refuse(Code::invalid_argument, fmt::format("{}: comm is NULL", call));
  if (comm->magic != hcommComm::kAlive)
    return refuse(Code::invalid_argument,
                  fmt::format("{}: comm is no communicator, or was destroyed", call));
  return refuse(Code::invalid_usage,
                fmt::format("{}: this process was forked after the communicator was made; make a "
                            "new one here",
                            call));
}

bool alive(hcommStream_t stream) {
  return stream != nullptr && stream->magic == hcommStream::kAlive &&
         stream->generation == process_generation();
}

bool alive(hcommEvent_t event) { return event != nullptr && event->magic == hcommEvent::kAlive; }

}  // namespace hcomm::api
