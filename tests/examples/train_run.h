// SPDX-License-Identifier: Apache-2.0
// Runs the training example under hcc-launch and reads what it prints.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "support/shell.h"

namespace hcomm::test {

inline Ran train(int ranks, const std::string& options) {
  return shell(fmt::format("'{}' -n {} '{}' {}", HCC_LAUNCH, ranks, TRAIN, options));
}

// The word behind the last `after`; "" where it is not.
inline std::string last_word(const std::string& text, const std::string& after) {
  const size_t at = text.rfind(after);
  if (at == std::string::npos) return "";
  std::istringstream words(text.substr(at + after.size()));
  std::string word;
  words >> word;
  return word;
}

// The line of an epoch; percentages as numbers.
struct Epoch {
  double loss = 0, accuracy = 0, images_per_s = 0, communication = 0;
};

inline Epoch epoch_of(const Ran& ran, int epoch) {
  std::istringstream lines(ran.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Epoch read;
    double number = 0;
    std::string percent, last;
    if (words >> number >> read.loss >> read.accuracy >> percent >> read.images_per_s >>
            read.communication >> last &&
        number == epoch && percent == "%" && last == "%")
      return read;
  }
  ADD_FAILURE() << "no epoch " << epoch << " in\n" << ran.output;
  return {};
}

}  // namespace hcomm::test
