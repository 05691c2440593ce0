// SPDX-License-Identifier: Apache-2.0
// Runs a tool as a process and looks at it from outside: standard output, standard error, exit
// code. Used by the tests of hcc and hcc-bench.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hcomm::test {

struct Ran {
  int code = -1;  // 128 + signal when it was killed
  std::string out, err;
};

struct Command {
  std::vector<std::string> words;        // the program first
  std::vector<std::string> environment;  // NAME=VALUE, over this process's; "NAME" removes
  // Sent to the process when its standard output holds the text.
  int signal = 0;
  std::string signal_after;
  int limit_s = 60;  // then it is killed
};
Ran run(const Command& command);
inline Ran run(std::vector<std::string> words) {
  return run(Command{.words = std::move(words)});
}

// A shell script over the tools; $1, $2... are the arguments.
Ran shell(const std::string& script, std::vector<std::string> arguments = {});

}  // namespace hcomm::test
