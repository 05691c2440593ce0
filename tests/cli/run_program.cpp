// SPDX-License-Identifier: Apache-2.0
#include "cli/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"

namespace hcomm::test {

namespace {

std::vector<std::string> environment_of(const Command& command) {
  std::map<std::string, std::string> table;
  for (const char* entry : process_environment()) {
    const std::string text = entry;
    table[text.substr(0, text.find('='))] = text;
  }
  for (const std::string& entry : command.environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name == entry)
      table.erase(name);
    else
      table[name] = entry;
  }
  std::vector<std::string> list;
  for (const auto& [name, entry] : table) list.push_back(entry);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& list) {
  std::vector<char*> result;
  for (std::string& each : list) result.push_back(each.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) fail_system(errno, "make a pipe");
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
};

// Appends what is there. False: the stream has ended.
bool drain(int fd, std::string& into) {
  char bytes[65536];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  if (got > 0) into.append(bytes, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// Reads both streams to their end, or until the deadline.
void pump(const Command& command, pid_t pid, pollfd (&fds)[2], Ran& ran) {
  const Deadline deadline = Deadline::after_ms(command.limit_s * 1000);
  bool signalled = command.signal == 0;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds, 2, static_cast<int>(deadline.left_ms())) == 0) {
      kill(pid, SIGKILL);
      return;
    }
    if (fds[0].revents != 0 && !drain(fds[0].fd, ran.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !drain(fds[1].fd, ran.err)) fds[1].fd = -1;
    if (signalled || ran.out.find(command.signal_after) == std::string::npos) continue;
    kill(pid, command.signal);
    signalled = true;
  }
}

}  // namespace

Ran run(const Command& command) {
  std::vector<std::string> words = command.words, environment = environment_of(command);
  const std::vector<char*> argv = pointers(words), envp = pointers(environment);
  Pipe out, err;
  const pid_t pid = fork();
  if (pid < 0) fail_system(errno, "fork");
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out.write.get(), STDOUT_FILENO);
    dup2(err.write.get(), STDERR_FILENO);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  out.write.reset();
  err.write.reset();
  Ran ran;
  pollfd fds[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
  pump(command, pid, fds, ran);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ran.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ran;
}

Ran shell(const std::string& script, std::vector<std::string> arguments) {
  std::vector<std::string> words = {"bash", "-c", script, "bash"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(std::move(words));
}

}  // namespace hcomm::test
