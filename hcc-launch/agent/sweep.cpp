// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"

namespace hcomm::launch {

namespace {

constexpr int64_t kEndMs = 5000, kFirstPauseMs = 2, kLongestPauseMs = 100;

struct Process {
  pid_t pid, parent;
};

std::optional<pid_t> number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// "PID (name, any bytes) STATE PARENT ...". nullopt: gone, or a zombie, which needs no signal.
std::optional<Process> read_process(pid_t pid) {
  const UniqueFd fd(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char buffer[512];
  const ssize_t bytes = read(fd.get(), buffer, sizeof buffer);
  if (bytes <= 0) return std::nullopt;
  const std::string_view text(buffer, static_cast<size_t>(bytes));
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos || text.size() < name_end + 5) return std::nullopt;
  if (const char state = text[name_end + 2]; state == 'Z' || state == 'X') return std::nullopt;
  const auto parent = number(text.substr(name_end + 4));
  if (!parent) return std::nullopt;
  return Process{pid, *parent};
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return all;
  while (const dirent* entry = readdir(folder.get()))
    if (const auto pid = number(entry->d_name))
      if (const auto process = read_process(*pid)) all.push_back(*process);
  return all;
}

void sleep_ms(int64_t ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  const std::vector<Process> all = all_processes();
  std::vector<pid_t> found;
  const auto add_children = [&](pid_t parent) {
    for (const Process& each : all)
      if (each.parent == parent) found.push_back(each.pid);
  };
  add_children(root);
  for (size_t i = 0; i < found.size(); i++) add_children(found[i]);
  return found;
}

void end_descendants() {
  const Deadline deadline = Deadline::after_ms(kEndMs);
  for (int64_t pause_ms = kFirstPauseMs;; pause_ms = std::min(pause_ms * 2, kLongestPauseMs)) {
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0 || (reaped < 0 && errno == EINTR));
    if (reaped < 0 || deadline.passed()) return;  // ECHILD: an orphan would have become a child
    for (const pid_t pid : descendants(getpid())) kill(pid, SIGKILL);
    sleep_ms(pause_ms);
  }
}

}  // namespace hcomm::launch
