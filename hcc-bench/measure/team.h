// SPDX-License-Identifier: Apache-2.0
// What a measurement needs of its ranks, apart from the operation that it times. World is the real
// one, over a communicator; tests bring their own.
#pragma once

#include <span>

namespace hcomm::bench {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual void barrier() = 0;
  // values[i] becomes the maximum of it over the ranks, the same bits on all of them.
  virtual void maximum(std::span<double> values) = 0;
};

}  // namespace hcomm::bench
