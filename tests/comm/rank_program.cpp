// SPDX-License-Identifier: Apache-2.0
// One rank of a job as a process: joins by what its launcher has set, then does what its arguments
// say, a word each. Says each step in a line on standard output.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>

#include "base/config.h"
#include "comm/control/control.h"
#include "comm/control/job.h"

// What libpmix keeps to the end is its own.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libpmix\nleak:libevent\nleak:pmix\n";
}

namespace hcomm::comm {
namespace {

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = fmt::format(format, std::forward<Args>(args)...) + "\n";
  const ssize_t bytes = write(STDOUT_FILENO, line.data(), line.size());
  (void)bytes;
}

Deadline soon() {
  return Deadline::after_ms(30'000);
}

struct Rank {
  Config config = Config::from_env();
  Job job = find_job(config, process_environment());
  Service service;
  Meeting meeting;
  std::unique_ptr<Control> control;

  uint32_t rank() const { return static_cast<uint32_t>(job.rank); }
  uint32_t size() const { return static_cast<uint32_t>(job.size); }

  void join() {
    const Root& root = meet(service, config, job, meeting, soon());
    control = Control::join(service, {.root = root,
                                      .rank = rank(),
                                      .ranks = size(),
                                      .deadline = Deadline::after_ms(config.init_timeout_ms),
                                      .library_version = 100});
    control->on_failure([](const Failure& failure) {
      say("failure {} peer {}: {}", name(failure.code), failure.peer, failure.text);
    });
    say("joined {} of {} by {}", job.rank, job.size, job.source);
  }

  // All ranks but the last `without` exchange their numbers.
  void exchange(uint32_t rounds, uint32_t without) {
    const uint32_t members = size() - without;
    if (rank() >= members) return;
    std::vector<uint32_t> ranks(members);
    std::iota(ranks.begin(), ranks.end(), 0);
    const Circle circle{7, "some", rank(), ranks};
    for (uint32_t round = 0; round < rounds; round++) {
      const auto all = control->exchange(circle, "numbers", std::to_string(rank()), soon());
      for (uint32_t i = 0; i < members; i++)
        if (all[i] != std::to_string(i)) say("wrong part {}", all[i]);
    }
    say("exchanged");
  }

  void fork_child() {
    const pid_t child = fork();
    if (child == 0) {
      control.reset();
      meeting.hub.reset();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("child {}", status);
  }

  void leave() {
    control.reset();
    meeting = {};
    say("left");
  }

  void act(std::string_view word) {
    if (word == "again") control.reset();  // the next world at the same root
    if (word == "join" || word == "again")
      join();
    else if (word == "exchange")
      exchange(20, 0);
    else if (word == "exchange-without-last")
      exchange(200, 1);
    else if (word == "stop-last" && rank() + 1 == size())
      raise(SIGSTOP);
    else if (word == "fork")
      fork_child();
    else if (word == "exit-1" && rank() == 1)
      _exit(0);
    else if (word == "sleeper" && rank() == 1 && fork() == 0)
      execlp("sleep", "sleep", "20", nullptr);
    else if (word == "leave")
      leave();
    else if (word == "wait")
      pause_for_ever();
  }

  [[noreturn]] static void pause_for_ever() {
    while (true) pause();
  }
};

// Many signals whose handler does not restart system calls.
void storm() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  const itimerval interval{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

}  // namespace
}  // namespace hcomm::comm

int main(int count, char** words) {
  using namespace hcomm::comm;
  try {
    Rank rank;
    for (int i = 1; i < count; i++) {
      if (std::string_view(words[i]) == "storm")
        storm();
      else
        rank.act(words[i]);
    }
  } catch (const hcomm::Error& error) {
    say("error {} peer {}: {}", hcomm::name(error.code()), error.peer(), error.text());
    return 3;
  }
  return 0;
}
