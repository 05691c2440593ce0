// SPDX-License-Identifier: Apache-2.0
#include "algorithm/algorithm.h"

#include "base/error.h"

namespace hcomm::algorithm {

namespace family {
#define HCOMM_ALGORITHM(name) std::span<const Algorithm> name();
#include "algorithm/algorithms.def"
#undef HCOMM_ALGORITHM
}  // namespace family

namespace {

std::vector<Algorithm> collect() {
  std::vector<Algorithm> table;
  for (const std::span<const Algorithm> algorithms : {
#define HCOMM_ALGORITHM(name) family::name(),
#include "algorithm/algorithms.def"
#undef HCOMM_ALGORITHM
       })
    table.insert(table.end(), algorithms.begin(), algorithms.end());
  return table;
}

// Alone, every collective is a copy, so that algorithms are written for two ranks and more.
void build_alone(schedule::Builder& builder) {
  if (schedule::blocks_of(builder.shape(), schedule::kOutput) > 0)
    builder.copy(builder.output(), builder.input());
}

}  // namespace

std::span<const Algorithm> all() {
  static const std::vector<Algorithm> table = collect();
  return table;
}

const Algorithm* find(schedule::Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : all())
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

schedule::Schedule build(const Algorithm& algorithm, const schedule::Shape& shape) {
  HCOMM_CHECK(shape.collective == algorithm.collective && algorithm.fits(shape),
              "algorithm {} of {}", algorithm.name, schedule::name(algorithm.collective));
  HCOMM_CHECK(shape.rank < shape.ranks && shape.root < shape.ranks, "rank {} root {} of {}",
              shape.rank, shape.root, shape.ranks);
  schedule::Builder builder(shape);
  if (shape.ranks == 1)
    build_alone(builder);
  else
    algorithm.build(builder);
  return builder.finish(algorithm.name, algorithm.order);
}

std::vector<schedule::Schedule> build_all(const Algorithm& algorithm, schedule::Shape shape) {
  std::vector<schedule::Schedule> schedules;
  schedules.reserve(shape.ranks);
  for (shape.rank = 0; shape.rank < shape.ranks; shape.rank++)
    schedules.push_back(build(algorithm, shape));
  return schedules;
}

}  // namespace hcomm::algorithm
