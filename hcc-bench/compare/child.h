// SPDX-License-Identifier: Apache-2.0
// A process that this one starts and is sure to end: it has a process group of its own, so that a
// Ctrl-C reaches only us, and is told by the kernel when we are gone. What it prints is kept.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace hcomm::compare {

struct Launch {
  std::vector<std::string> words;        // the program first, looked up in PATH
  std::vector<std::string> environment;  // NAME=VALUE, over ours
};

class Child {
 public:
  explicit Child(const Launch& launch);  // throws system
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(0); }

  bool running();
  // Waits at most so long for it to end by itself, then ends it and all of its group.
  void end(int64_t grace_ms);
  int code();                  // of one that has ended: 128 + signal when it was killed
  std::string end_text();      // "exit code 1", "killed by signal 11"
  std::string output() const;  // both streams

 private:
  void wait(int64_t limit_ms);

  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  UniqueFd output_;
};

struct Ran {
  int code = -1;
  std::string output;
};
// Runs it to its end, or for so long.
Ran run(const Launch& launch, int64_t limit_ms);

// The last lines of a text, as one, with control bytes made visible.
std::string last_lines(const std::string& text, size_t lines);

// Where PATH has the program; "": nowhere.
std::string find_program(const std::string& name);

}  // namespace hcomm::compare
