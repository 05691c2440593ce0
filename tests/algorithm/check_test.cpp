// SPDX-License-Identifier: Apache-2.0
// Proves every algorithm of the table, by schedule::check, over the grid of rank counts, roots,
// places of the buffers and equal or varied blocks. The table is enumerated, so a new algorithm is
// proved without an edit here.
#include "schedule/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "algorithm/algorithm.h"
#include "base/clock.h"

namespace hcomm::algorithm {

static void PrintTo(const Algorithm& algorithm, std::ostream* out) {
  *out << schedule::name(algorithm.collective) << " " << algorithm.name;
}

namespace {

using schedule::Collective;
using schedule::Order;
using schedule::Schedule;
using schedule::Shape;

enum class Place { separate, in_place, mixed };  // mixed: every other rank in place
constexpr std::string_view kPlaces[] = {"separate", "in place", "mixed"};

std::vector<uint32_t> rank_counts() {
  std::vector<uint32_t> counts;
  for (uint32_t ranks = 1; ranks <= 33; ranks++) counts.push_back(ranks);
  counts.insert(counts.end(), {48, 64});
  std::erase_if(counts, [](uint32_t ranks) { return ranks > MOST_RANKS; });
  return counts;
}

std::vector<uint32_t> roots(Collective collective, uint32_t ranks) {
  if (!schedule::rooted(collective)) return {0};
  constexpr uint32_t kMostForAll = 9;
  if (ranks > kMostForAll) return {0, 1, ranks / 2, ranks - 1};
  std::vector<uint32_t> all;
  for (uint32_t root = 0; root < ranks; root++) all.push_back(root);
  return all;
}

std::vector<Shape> shapes(const Algorithm& algorithm) {
  std::vector<Shape> shapes;
  for (const uint32_t ranks : rank_counts())
    for (const uint32_t root : roots(algorithm.collective, ranks))
      for (const bool varied : {false, true}) {
        const Shape shape{
            .collective = algorithm.collective, .varied = varied, .ranks = ranks, .root = root};
        if (algorithm.fits(shape)) shapes.push_back(shape);
      }
  return shapes;
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
  const int64_t start_ns = now_ns();
  size_t proved = 0, steps = 0;
  for (const Shape& shape : shapes(algorithm))
    for (const Place place : {Place::separate, Place::in_place, Place::mixed}) {
      const std::vector<Schedule> all = build_placed(algorithm, shape, place);
      for (const uint32_t credits : {0u, 1u}) {
        const schedule::Report report = schedule::check(all, {.credits = credits, .tiles = 2});
        ASSERT_TRUE(report.ok) << shape.ranks << " ranks, root " << shape.root << ", "
                               << (shape.varied ? "varied" : "equal") << " blocks, "
                               << kPlaces[static_cast<size_t>(place)] << ", credits " << credits
                               << ": " << report.finding;
        steps += report.steps;
      }
      proved += all.size();
    }
  EXPECT_GT(proved, 0u);
  fmt::print("{} {}: {} schedules proved, {} steps checked, {:.2f} s\n",
             schedule::name(algorithm.collective), algorithm.name, proved, steps,
             static_cast<double>(now_ns() - start_ns) * 1e-9);
}

std::string case_name(const testing::TestParamInfo<Algorithm>& info) {
  return fmt::format("{}_{}", schedule::name(info.param.collective), info.param.name);
}
INSTANTIATE_TEST_SUITE_P(Table, CheckTest, testing::ValuesIn(all().begin(), all().end()),
                         case_name);

TEST(Table, NamesAreUniqueAndFound) {
  std::set<std::pair<Collective, std::string_view>> seen;
  for (const Algorithm& algorithm : all()) {
    EXPECT_TRUE(seen.emplace(algorithm.collective, algorithm.name).second) << algorithm.name;
    EXPECT_EQ(find(algorithm.collective, algorithm.name), &algorithm);
    EXPECT_FALSE(algorithm.source.empty()) << algorithm.name;
  }
  EXPECT_EQ(find(Collective::barrier, "ring"), nullptr);
}

// Whatever the collective and its form, some algorithm serves every rank count; a reduction has one
// for deterministic mode too.
TEST(Table, ServesEveryShape) {
  for (int i = 0; i < schedule::kCollectives; i++)
    for (const uint32_t ranks : rank_counts())
      for (const bool varied : {false, true}) {
        Shape shape{
            .collective = static_cast<Collective>(i), .varied = varied, .ranks = ranks, .root = 0};
        const bool has_varied_form = shape.collective == Collective::all_gather ||
                                     shape.collective == Collective::reduce_scatter ||
                                     shape.collective == Collective::all_to_all ||
                                     shape.collective == Collective::gather ||
                                     shape.collective == Collective::scatter;
        size_t any = 0, in_rank_order = 0;
        for (const Algorithm& algorithm : all()) {
          if (algorithm.collective != shape.collective || !algorithm.fits(shape)) continue;
          any++;
          if (algorithm.order == Order::rank) in_rank_order++;
        }
        EXPECT_EQ(any > 0, !varied || has_varied_form) << schedule::name(shape.collective);
        if (schedule::reduces(shape.collective)) {
          EXPECT_EQ(in_rank_order > 0, any > 0) << schedule::name(shape.collective);
        }
      }
}

// What all must agree on is the same on every rank, in place or not.
TEST(Table, FitIsIndependentOfRankAndPlace) {
  for (const Algorithm& algorithm : all())
    for (Shape shape : shapes(algorithm))
      for (const bool in_place : {false, true})
        for (shape.rank = 0; shape.rank < shape.ranks; shape.rank++) {
          shape.in_place = in_place;
          ASSERT_TRUE(algorithm.fits(shape)) << algorithm.name << " rank " << shape.rank;
        }
}

}  // namespace
}  // namespace hcomm::algorithm
