// SPDX-License-Identifier: Apache-2.0
// Plays a rank in the tests of hcc-launch. First argument: what to do.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/config.h"
#include "datatype/types.h"
#include "schedule/schedule.h"
#include "support/deny.h"
#include "trace/recorder.h"

namespace {

using hcomm::trace::RankState;

std::string variable(std::string_view name) {
  for (const std::string_view entry : hcomm::process_environment())
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return std::string(entry.substr(name.size() + 1));
  return {};
}

int number(const std::string& text) {
  return std::atoi(text.c_str());
}
int rank() {
  return number(variable("HCOMM_RANK"));
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) _exit(99);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void say(std::string_view text) {
  write_all(1, std::string(text) + "\n");
}

[[noreturn]] void sleep_for_ever() {
  while (true) pause();
}

void no_core() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// "sig" or "code": ends in the way that is named: 3, SEGV, ABRT, KILL.
[[noreturn]] void end_as(const std::string& how) {
  no_core();
  std::signal(SIGSEGV, SIG_DFL);  // not a sanitizer's, which would exit instead
  if (how == "SEGV") raise(SIGSEGV);
  if (how == "ABRT") raise(SIGABRT);
  if (how == "KILL") raise(SIGKILL);
  _exit(number(how));
}

int print_environment() {
  for (const char* entry : hcomm::process_environment())
    write_all(1, std::string_view(entry, std::strlen(entry) + 1));
  return 0;
}

int print_arguments(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    write_all(1, std::string_view(word.c_str(), word.size() + 1));
  return 0;
}

// Rank WHO ends as HOW; the others sleep.
int one_ends(const std::string& who, const std::string& how) {
  if (rank() == number(who)) end_as(how);
  sleep_for_ever();
}

int stubborn(const std::string& how) {
  if (how == "ignore") std::signal(SIGTERM, SIG_IGN);
  if (how == "block") std::signal(SIGTERM, [](int) { sleep_for_ever(); });
  if (fork() == 0) sleep_for_ever();
  say("ready");
  sleep_for_ever();
}

// A grandchild in a session of its own, without our group, pipe or terminal.
int with_escapee() {
  int ends[2];
  if (pipe(ends) != 0) return 98;
  if (fork() == 0) {
    setsid();
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    if (fork() != 0) _exit(0);
    write_all(ends[1], "x");
    for (int fd = 0; fd < 3; fd++) close(fd);
    sleep_for_ever();
  }
  char byte = 0;
  if (read(ends[0], &byte, 1) != 1) return 97;
  say("ready");
  return 0;
}

int lines(const std::string& count) {
  std::string text;
  for (int i = 0; i < number(count); i++) {
    text = "rank " + std::to_string(rank()) + " line " + std::to_string(i) + "\n";
    write_all(1, text);
  }
  return 0;
}

int hash_input(const std::string& how) {
  uint64_t hash = hcomm::kHashSeed;
  size_t bytes = 0;
  char buffer[8192];
  for (ssize_t got = 0; (got = read(0, buffer, sizeof buffer)) > 0;) {
    hash = hcomm::hash_bytes({buffer, static_cast<size_t>(got)}, hash);
    bytes += static_cast<size_t>(got);
    if (how == "slow" && bytes < (256 << 10)) usleep(1000);
  }
  say(std::to_string(bytes) + " " + std::to_string(hash));
  return 0;
}

int progress() {
  for (int i = 1; i <= 100; i++) {
    write_all(1, "\r" + std::to_string(i) + "%");
    if (i == 10) usleep(300'000);  // what is seen before the newline is under test
  }
  write_all(1, "\n");
  return 0;
}

int print_cores() {
  FILE* status = std::fopen("/proc/self/status", "r");
  char line[4096];
  while (std::fgets(line, sizeof line, status) != nullptr)
    if (std::strncmp(line, "Cpus_allowed_list:\t", 19) == 0)
      write_all(1, std::to_string(rank()) + ":" + (line + 19));
  std::fclose(status);
  return 0;
}

int on_signal() {
  for (const int signo : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT})
    std::signal(signo, [](int got) { write_all(1, "got " + std::to_string(got) + "\n"); });
  say("ready");
  sleep_for_ever();
}

// Writes into the recorder as the library does. `after`: how it ends, "": not; `ranks`: of its
// communicator, "": the job's.
int record(const std::string& state, const std::string& after, const std::string& ranks) {
  hcomm::trace::Recorder recorder(
      number(variable("HCOMM_RECORDER_FD")), static_cast<uint32_t>(rank()),
      static_cast<uint32_t>(number(ranks.empty() ? variable("HCOMM_SIZE") : ranks)));
  if (state == "running") {
    recorder.area().state.store(RankState::ready);
    uint64_t serial = 0;
    auto& op = recorder.begin(serial);
    op.sequence = 57;
    op.count = 1 << 20;
    op.communicator = 0xabcd;
    op.collective = static_cast<uint8_t>(hcomm::schedule::Collective::all_reduce);
    op.type = static_cast<uint8_t>(hcomm::Type::float32);
    op.op = static_cast<uint8_t>(hcomm::Op::sum);
    recorder.publish(op, serial);
    recorder.area().waiting_peer.store(1);
  }
  say("recorded");
  if (!after.empty()) end_as(after);
  sleep_for_ever();
}

// Rank 0 serves the socket that it was given; the others connect to HCOMM_ROOT.
int meet() {
  if (rank() == 0) {
    const int fd = number(variable("HCOMM_ROOT_FD"));
    for (int i = 1; i < number(variable("HCOMM_SIZE")); i++) {
      const int peer = accept(fd, nullptr, nullptr);
      if (peer < 0) return 11;
      write_all(peer, variable("HCOMM_JOB_ID"));
      close(peer);
    }
    return 0;
  }
  const std::string root = variable("HCOMM_ROOT");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(number(root.substr(root.rfind(':') + 1))));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 12;
  char id[64] = {};
  size_t bytes = 0;
  for (ssize_t got = 0; (got = read(fd, id + bytes, sizeof id - 1 - bytes)) > 0;)
    bytes += static_cast<size_t>(got);
  return variable("HCOMM_JOB_ID") == id ? 0 : 13;
}

int print_descriptors() {
  std::string open;
  for (int fd = 3; fd < 1024; fd++)
    if (fcntl(fd, F_GETFD) >= 0) open += " " + std::to_string(fd);
  say(std::to_string(rank()) + ":" + open);
  return 0;
}

// Runs the command that follows, in which the system refuses some calls with EPERM.
int deny(const std::string& what, std::vector<std::string> command) {
  std::vector<long> calls;
  if (what == "affinity") calls = {SYS_sched_setaffinity};
  if (what == "numa") calls = {SYS_get_mempolicy, SYS_mbind, SYS_set_mempolicy};
#ifdef SYS_epoll_wait
  if (what == "epoll") calls = {SYS_epoll_wait};
#endif
  if (what == "epoll") calls.push_back(SYS_epoll_pwait);
  for (const long call : calls)
    if (!hcomm::test::deny_system_call(call)) return 94;
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execv(words[0], words.data());
  return 93;
}

int pieces(const std::string& text) {
  write_all(1, text);
  usleep(400'000);
  write_all(1, " end\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  const auto word = [&](size_t i) { return i < words.size() ? words[i] : std::string(); };
  const std::string mode = word(1);
  if (mode == "env") return print_environment();
  if (mode == "argv") return print_arguments(words);
  if (mode == "exit") end_as(word(2));
  if (mode == "one-ends") return one_ends(word(2), word(3));
  if (mode == "stubborn") return stubborn(word(2));
  if (mode == "escapee") return with_escapee();
  if (mode == "escapee-wait") return with_escapee() != 0 ? 1 : (sleep_for_ever(), 0);
  if (mode == "lines") return lines(word(2));
  if (mode == "hash") return hash_input(word(2));
  if (mode == "progress") return progress();
  if (mode == "cores") return print_cores();
  if (mode == "signals") return on_signal();
  if (mode == "record") return record(word(2), word(3), word(4));
  if (mode == "meet") return meet();
  if (mode == "descriptors") return print_descriptors();
  if (mode == "pieces") return pieces(word(2));
  if (mode == "deny") return deny(word(2), {words.begin() + 3, words.end()});
  if (mode == "stderr") {
    for (int i = 0; i < 30; i++) write_all(2, "complaint " + std::to_string(i) + "\n");
    end_as(word(2));
  }
  if (mode == "print") {
    write_all(1, word(2));
    write_all(2, word(3));
    return 0;
  }
  if (mode == "ready") {
    say("ready");
    sleep_for_ever();
  }
  std::fprintf(stderr, "launch_probe: what is '%s'?\n", mode.c_str());
  return 96;
}

}  // namespace

int main(int argc, char** argv) {
  return run({argv, argv + argc});
}
