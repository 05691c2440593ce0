// SPDX-License-Identifier: Apache-2.0
// Runs hcc-launch as a process and looks at it from outside: what it wrote, how it ended, what it
// left. Used by the tests of this folder. Every run carries a token in its environment, by which
// processes of its job are found wherever they went.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace hcomm::launch_test {

struct Result {
  int code = -1;  // 128 + signal when it was killed
  std::string out, err;
  double seconds = 0;
  bool in_time = true;
};

// The program that plays a rank, see launch_probe.cpp.
std::string probe();

class Launch {
 public:
  // Arguments of hcc-launch. Nothing runs before start(), wait_for() or finish().
  explicit Launch(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch();

  Launch& set(std::string entry);  // NAME=VALUE
  Launch& unset(std::string name);
  Launch& input(int fd);                           // its standard input; -1: closed. Else /dev/null
  Launch& output(int fd);                          // its standard output; else it is captured
  Launch& errors(int fd);                          // its standard error, likewise
  Launch& prefix(std::vector<std::string> words);  // e.g. {"taskset", "-c", "1"}
  Launch& own_group();                             // as a shell starts a job

  void start();
  // Until the captured output holds the text `times` times. False when it ended or time is up.
  bool wait_for(std::string_view text, int times = 1);
  int number_before(std::string_view text) const;  // in the output so far; -1: none
  pid_t pid() const { return pid_; }
  pid_t process(std::string_view name) const;  // hcc-launch's own, e.g. "hcc-agent"; -1: none
  std::vector<pid_t> processes() const;        // all that carry the token and live
  void signal(int signo) const;
  void signal_group(int signo) const;  // of own_group
  Result finish(double limit_s = 30);
  // Waits for the job's processes to be gone. True when none is left.
  bool nothing_left(double limit_s = 5) const;

 private:
  bool pump(int timeout_ms);  // false: both streams ended
  std::vector<std::string> environment() const;

  std::vector<std::string> arguments_, prefix_, set_, unset_;
  std::string token_;
  int input_ = -2, output_ = -2, errors_ = -2;
  pid_t pid_ = -1;
  bool own_group_ = false;
  UniqueFd out_, err_;
  Result result_;
  double started_ = 0;
};

Result launch(std::vector<std::string> arguments);

// kill() for one process: a pid of 0 or below, which would mean many, stops the test.
void signal_process(pid_t pid, int signo);
double seconds_now();
bool wait_until(double limit_s, const auto& condition);
char state_of(pid_t pid);        // R, S, T, Z, ... as ps shows it; 0: gone
std::string temporary_folder();  // new and empty, removed at exit
std::string read_file(const std::string& path);
int count_of(std::string_view text, std::string_view what);
// Rounds of a race: `normal`, or HCOMM_TEST_ROUNDS when that is set.
int rounds(int normal);

void pause_ms(int ms);

bool wait_until(double limit_s, const auto& condition) {
  const double end = seconds_now() + limit_s;
  while (!condition()) {
    if (seconds_now() > end) return false;
    pause_ms(5);
  }
  return true;
}

}  // namespace hcomm::launch_test
