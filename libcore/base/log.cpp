// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hcomm {

namespace {

// Process-wide: a log has one place to go.
std::atomic<int> g_level{static_cast<int>(LogLevel::warn)};
std::atomic<int> g_fd{STDERR_FILENO};
std::atomic<int> g_rank{-1};

constexpr std::string_view kNames[] = {"error", "warn", "info", "debug"};

std::string expand(std::string_view pattern, int rank) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] == 'r') {
      path += std::to_string(rank);
      i++;
    } else if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] == 'p') {
      path += std::to_string(getpid());
      i++;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

}  // namespace

void log_setup(std::string_view level, std::string_view file, int rank) {
  for (size_t i = 0; i < std::size(kNames); i++)
    if (kNames[i] == level) g_level.store(static_cast<int>(i), std::memory_order_relaxed);
  g_rank.store(rank, std::memory_order_relaxed);
  if (file.empty() || g_fd.load(std::memory_order_relaxed) != STDERR_FILENO) return;
  const std::string path = expand(file, rank);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) fail_system(errno, "HCOMM_LOG_FILE: open {}", path);
  g_fd.store(fd, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) <= g_level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view text) {
  const int rank = g_rank.load(std::memory_order_relaxed);
  const std::string who = rank >= 0 ? fmt::format("hcomm [rank {}]", rank) : "hcomm";
  const std::string line =
      fmt::format("{} {}: {}\n", who, kNames[static_cast<size_t>(level)], text);
  const ssize_t written = ::write(g_fd.load(std::memory_order_relaxed), line.data(), line.size());
  (void)written;  // nowhere left to complain
}

}  // namespace hcomm
