// SPDX-License-Identifier: Apache-2.0
// The command line of train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace train {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 3;
  std::vector<size_t> hidden = {128};
  size_t batch = 256;  // images a step, of all ranks together
  float rate = 0.05f;
  uint64_t seed = 1;
  size_t limit = 0;                 // images, 0: all
  size_t bucket = size_t{1} << 20;  // bytes of gradients that travel together, 0: all
  size_t rounds = 0;                // of measuring a step, 0: not measured
  bool deterministic = false;
};

// Prints help or what is wrong and ends the process where that is asked for.
Options parse(int argc, char** argv);

}  // namespace train
