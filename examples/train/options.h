// SPDX-License-Identifier: Apache-2.0
// The command line of train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace train {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 3;
  size_t batch = 256;  // images a step, of all ranks together
  float rate = 0.05f;
  uint64_t seed = 1;
  size_t limit = 0;  // images, 0: all
  bool deterministic = false;
};

// Prints help or what is wrong and ends the process where that is asked for.
Options parse(int argc, char** argv);

}  // namespace train
