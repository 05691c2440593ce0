// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace hcomm {

std::atomic<uint32_t> g_process_generation{[] {
  pthread_atfork(nullptr, nullptr,
                 [] { g_process_generation.fetch_add(1, std::memory_order_relaxed); });
  return 1u;
}()};

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) fail_system(errno, "read random bytes");
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

std::optional<ProcessState> read_process(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');  // "PID (name, which may hold anything) STATE PARENT ..."
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(end + 1));
  ProcessState state;
  if (!(rest >> state.letter >> state.parent)) return std::nullopt;
  return state;
}

}  // namespace hcomm
