// SPDX-License-Identifier: Apache-2.0
// Small textbook algorithms written here, so that the tests of schedule/ stand on nothing above it.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace hcomm::schedule::samples {

using Build = void (*)(Builder&);

struct Sample {
  const char* name;
  Collective collective;
  Order order;
  Build build;
};

void ring_all_reduce(Builder& b);
void direct_all_reduce(Builder& b);  // all to all, then a left fold in rank order
void chain_broadcast(Builder& b);
void ring_all_gather(Builder& b);
void pairwise_all_to_all(Builder& b);
void linear_gather(Builder& b);
void dissemination_barrier(Builder& b);

const std::vector<Sample>& all();
const Sample& named(const char* name);

std::vector<Schedule> build_all(const Sample& sample, Shape shape);
std::vector<Schedule> build_all(const Sample& sample, uint32_t ranks);

}  // namespace hcomm::schedule::samples
