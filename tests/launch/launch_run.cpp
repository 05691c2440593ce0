// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <random>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"

namespace hcomm::launch_test {

namespace {

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

UniqueFd pipe_into(int target, posix_spawn_file_actions_t& actions, UniqueFd& writing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_system(errno, "make a pipe");
  writing.reset(ends[1]);
  posix_spawn_file_actions_adddup2(&actions, ends[1], target);
  return UniqueFd(ends[0]);
}

bool read_into(UniqueFd& fd, std::string& text) {
  char buffer[65536];
  const ssize_t bytes = read(fd.get(), buffer, sizeof buffer);
  if (bytes > 0)
    text.append(buffer, static_cast<size_t>(bytes));
  else
    fd.reset();
  return bytes > 0;
}

struct Folder {
  explicit Folder(std::string where) : path(std::move(where)) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

void signal_process(pid_t pid, int signo) {
  HCOMM_CHECK(pid > 1, "pid={}", pid);
  kill(pid, signo);
}

double seconds_now() {
  return static_cast<double>(now_ns()) / 1e9;
}

void pause_ms(int ms) {
  poll(nullptr, 0, ms);
}

char state_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  return name_end == stat.npos ? '\0' : stat[name_end + 2];
}

std::string probe() {
  return LAUNCH_PROBE;
}

Launch::~Launch() {
  if (pid_ < 0) return;
  signal_process(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Launch& Launch::set(std::string entry) {
  set_.push_back(std::move(entry));
  return *this;
}
Launch& Launch::unset(std::string name) {
  unset_.push_back(std::move(name));
  return *this;
}
Launch& Launch::input(int fd) {
  input_ = fd;
  return *this;
}
Launch& Launch::output(int fd) {
  output_ = fd;
  return *this;
}
Launch& Launch::errors(int fd) {
  errors_ = fd;
  return *this;
}
Launch& Launch::own_group() {
  own_group_ = true;
  return *this;
}
Launch& Launch::prefix(std::vector<std::string> words) {
  prefix_ = std::move(words);
  return *this;
}

std::vector<std::string> Launch::environment() const {
  std::vector<std::string> entries;
  const auto named = [](const std::vector<std::string>& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& each) { return name_of(each) == name; });
  };
  for (const char* entry : process_environment())
    if (!named(set_, name_of(entry)) && !named(unset_, name_of(entry))) entries.push_back(entry);
  entries.insert(entries.end(), set_.begin(), set_.end());
  entries.push_back(token_);
  return entries;
}

void Launch::start() {
  std::random_device random;
  token_ = fmt::format("HCC_TEST_TOKEN={:08x}{:08x}", random(), random());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  UniqueFd writing_out, writing_err;
  if (input_ == -2)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  else if (input_ == -1)
    posix_spawn_file_actions_addclose(&actions, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, input_, 0);
  if (output_ == -2)
    out_ = pipe_into(1, actions, writing_out);
  else
    posix_spawn_file_actions_adddup2(&actions, output_, 1);
  if (errors_ == -2)
    err_ = pipe_into(2, actions, writing_err);
  else
    posix_spawn_file_actions_adddup2(&actions, errors_, 2);

  std::vector<std::string> words = prefix_;
  words.push_back(HCC_LAUNCH);
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<std::string> entries = environment();
  started_ = seconds_now();
  // The launcher begins with the usual way of a broken pipe, whatever a test does with its own.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGDEF | (own_group_ ? POSIX_SPAWN_SETPGROUP : 0)));
  const int error = posix_spawnp(&pid_, words[0].c_str(), &actions, &attributes,
                                 pointers(words).data(), pointers(entries).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_system(error, "start {}", words[0]);
}

bool Launch::pump(int timeout_ms) {
  pollfd fds[] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  if (!out_ && !err_) return false;
  if (poll(fds, 2, timeout_ms) <= 0) return true;
  if (fds[0].revents != 0) read_into(out_, result_.out);
  if (fds[1].revents != 0) read_into(err_, result_.err);
  return true;
}

bool Launch::wait_for(std::string_view text, int times) {
  if (pid_ < 0) start();
  const double end = seconds_now() + 20;
  while (count_of(result_.out + result_.err, text) < times)
    if (!pump(100) || seconds_now() > end) return false;
  return true;
}

int Launch::number_before(std::string_view text) const {
  const size_t end = result_.out.find(text);
  if (end == std::string::npos) return -1;
  const size_t blank = result_.out.rfind(' ', end - 1);
  return std::atoi(result_.out.c_str() + (blank == std::string::npos ? 0 : blank + 1));
}

void Launch::signal(int signo) const {
  signal_process(pid_, signo);
}

void Launch::signal_group(int signo) const {
  HCOMM_CHECK(own_group_ && pid_ > 1, "pid={}", pid_);
  kill(-pid_, signo);
}

Result Launch::finish(double limit_s) {
  if (pid_ < 0) start();
  const double end = seconds_now() + limit_s;
  int status = 0;
  bool ended = false;
  while (!ended || out_ || err_) {
    if (!ended) ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (seconds_now() > end) {
      result_.in_time = false;
      signal_process(pid_, SIGKILL);
      break;
    }
    if (!pump(ended ? 100 : 5)) pause_ms(1);
  }
  if (!ended) waitpid(pid_, &status, 0);
  pid_ = -1;
  result_.seconds = seconds_now() - started_;
  result_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result_;
}

std::vector<pid_t> Launch::processes() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (read_file(entry.path() / "environ").find(token_) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

pid_t Launch::process(std::string_view name) const {
  for (const pid_t pid : processes())
    if (read_file(fmt::format("/proc/{}/comm", pid)) == fmt::format("{}\n", name)) return pid;
  return -1;
}

bool Launch::nothing_left(double limit_s) const {
  return wait_until(limit_s, [this] { return processes().empty(); });
}

Result launch(std::vector<std::string> arguments) {
  return Launch(std::move(arguments)).finish();
}

std::string temporary_folder() {
  static std::list<Folder> folders;
  std::string path = std::filesystem::temp_directory_path() / "hcc-launch-test-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) fail_system(errno, "make {}", path);
  folders.emplace_back(path);
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int count_of(std::string_view text, std::string_view what) {
  int count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size()))
    count++;
  return count;
}

int rounds(int normal) {
  for (const std::string_view entry : process_environment())
    if (entry.starts_with("HCOMM_TEST_ROUNDS=")) return std::atoi(entry.data() + 18);
  return normal;
}

}  // namespace hcomm::launch_test
