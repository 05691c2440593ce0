// SPDX-License-Identifier: Apache-2.0
// Proves every algorithm of the table, by schedule::check, over the grid of rank counts, roots,
// places of the buffers and equal or varied blocks. The table is enumerated, so a new algorithm is
// proved without an edit here.
#include "schedule/check.h"

#include <gtest/gtest.h>

#include <chrono>

#include "algorithm/algorithm.h"

namespace hcomm::algorithm {
namespace {

using schedule::Collective;
using schedule::Order;
using schedule::Schedule;
using schedule::Shape;

enum class Place { separate, in_place, mixed };  // mixed: every other rank in place

#ifndef HCOMM_CHECK_MAX_RANKS
#define HCOMM_CHECK_MAX_RANKS 64
#endif

std::vector<uint32_t> rank_counts() {
  std::vector<uint32_t> counts;
  for (uint32_t ranks = 1; ranks <= 33; ranks++) counts.push_back(ranks);
  counts.push_back(48);
  counts.push_back(64);
  std::erase_if(counts, [](uint32_t ranks) { return ranks > HCOMM_CHECK_MAX_RANKS; });
  return counts;
}

std::vector<uint32_t> roots(Collective collective, uint32_t ranks) {
  if (!schedule::rooted(collective)) return {0};
  constexpr uint32_t kAllRoots = 9;
  if (ranks > kAllRoots) return {0, 1, ranks / 2, ranks - 1};
  std::vector<uint32_t> all;
  for (uint32_t root = 0; root < ranks; root++) all.push_back(root);
  return all;
}

std::vector<Schedule> build_placed(const Algorithm& algorithm, Shape shape, Place place) {
  std::vector<Schedule> all;
  for (shape.rank = 0; shape.rank < shape.ranks; shape.rank++) {
    shape.in_place = place == Place::in_place || (place == Place::mixed && shape.rank % 2 == 1);
    all.push_back(build(algorithm, shape));
  }
  return all;
}

class CheckTest : public testing::TestWithParam<Algorithm> {};

TEST_P(CheckTest, Proved) {
  const Algorithm& algorithm = GetParam();
  const auto start = std::chrono::steady_clock::now();
  size_t proved = 0, steps = 0;
  for (const uint32_t ranks : rank_counts())
    for (const uint32_t root : roots(algorithm.collective, ranks))
      for (const bool varied : {false, true})
        for (const Place place : {Place::separate, Place::in_place, Place::mixed}) {
          const Shape shape{
              .collective = algorithm.collective, .varied = varied, .ranks = ranks, .root = root};
          if (!algorithm.fits(shape)) continue;
          const std::vector<Schedule> all = build_placed(algorithm, shape, place);
          const schedule::Report report = schedule::check(all);
          ASSERT_TRUE(report.ok) << "ranks " << ranks << " root " << root << " varied " << varied
                                 << " place " << static_cast<int>(place) << ": " << report.finding;
          proved++;
          steps += report.steps;
        }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("proved %zu collectives, %zu steps, %.2f s\n", proved, steps, took.count());
  EXPECT_GT(proved, 0u);
}

std::string case_name(const testing::TestParamInfo<Algorithm>& info) {
  return std::string(schedule::name(info.param.collective)) + "_" + std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(All, CheckTest, testing::ValuesIn(all().begin(), all().end()), case_name);

}  // namespace
}  // namespace hcomm::algorithm
