// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "cli/terminal.h"

namespace hcomm::compare {

namespace {

// In the child, after fork: never returns.
[[noreturn]] void execute(const Launch& launch, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const std::string& each : launch.environment) {
    const size_t equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> words;
  for (const std::string& word : launch.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
  _exit(127);
}

}  // namespace

Child::Child(const Launch& launch) : output_(memfd_create("output", MFD_CLOEXEC)) {
  if (!output_) fail_system(errno, "memory for the output of {}", launch.words[0]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) fail_system(errno, "start {}", launch.words[0]);
  if (pid_ == 0) execute(launch, output_.get(), parent);
  setpgid(pid_, pid_);  // whoever of us comes first
}

bool Child::running() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return !ended_;
}

void Child::wait(int64_t limit_ms) {
  const int64_t end_ns = now_ns() + limit_ms * 1'000'000;
  while (running() && now_ns() < end_ns) poll(nullptr, 0, 10);
}

void Child::end(int64_t grace_ms) {
  if (pid_ < 0) return;
  wait(grace_ms);
  if (running()) {
    kill(-pid_, SIGTERM);  // launchers end their ranks
    wait(3000);
  }
  kill(-pid_, SIGKILL);
  if (running()) waitpid(pid_, &status_, 0);
  ended_ = true;
  pid_ = -1;
}

int Child::code() {
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string Child::end_text() {
  const int seen = code();
  return seen > 128 ? fmt::format("signal {}", seen - 128) : fmt::format("exit code {}", seen);
}

std::string Child::output() const {
  std::string text;
  char block[4096];
  for (off_t at = 0;;) {
    const ssize_t got = pread(output_.get(), block, sizeof block, at);
    if (got <= 0) return text;
    text.append(block, static_cast<size_t>(got));
    at += got;
  }
}

Ran run(const Launch& launch, int64_t limit_ms) {
  Child child(launch);
  child.end(limit_ms);
  return {child.code(), child.output()};
}

std::string last_lines(const std::string& text, size_t lines) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find_first_not_of(" -\r\t") != std::string::npos) all.push_back(line);
    at = end + 1;
  }
  std::string result;
  for (size_t i = all.size() > lines ? all.size() - lines : 0; i < all.size(); i++)
    result += (result.empty() ? "" : " | ") + cli::printable(all[i].substr(0, 300));
  return result;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const std::string path(cli::environment_value("PATH"));
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string file = path.substr(at, end - at) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return {};
}

}  // namespace hcomm::compare
