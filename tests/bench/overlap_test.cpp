// SPDX-License-Identifier: Apache-2.0
// hcc-bench overlap: what follows from the times, and the computation.
#include <gtest/gtest.h>

#include "hcc-bench/overlap/report.h"
#include "hcc-bench/overlap/row.h"
#include "hcc-bench/overlap/work.h"

namespace hcomm::bench::overlap {
namespace {

TEST(Overlap, IsTheShareOfTheOperationThatIsHidden) {
  EXPECT_DOUBLE_EQ(overlap_of({.comm = 2, .compute = 3, .both = 3}), 1);
  EXPECT_DOUBLE_EQ(overlap_of({.comm = 2, .compute = 3, .both = 5}), 0);
  EXPECT_DOUBLE_EQ(overlap_of({.comm = 2, .compute = 3, .both = 3.5}), 0.75);
}

TEST(Overlap, IsNotCutOff) {
  EXPECT_DOUBLE_EQ(overlap_of({.comm = 2, .compute = 3, .both = 7}), -1);
  EXPECT_DOUBLE_EQ(overlap_of({.comm = 2, .compute = 3, .both = 2}), 1.5);
}

TEST(Overlap, ARowIsOfTheMediansAndSaysWhatTheRoundsGave) {
  Row row;
  fill(row, {{4, 4, 4}, {4, 4, 5}, {4, 4, 8}});
  EXPECT_EQ(row.rounds, 3U);
  EXPECT_DOUBLE_EQ(row.median.both, 5);
  EXPECT_DOUBLE_EQ(row.overlap, 0.75);
  EXPECT_DOUBLE_EQ(row.least, 0);
  EXPECT_DOUBLE_EQ(row.interval.low, 0);
  EXPECT_DOUBLE_EQ(row.interval.high, 1);
  EXPECT_DOUBLE_EQ(entry_of(row).json["both_us"].get<double>(), 5e6);
}

TEST(Overlap, PiecesAreAllOfTheWork) {
  Work work;
  int pieces = 0;
  run_in_pieces(work, 10, 4, [&] { pieces++; });
  EXPECT_EQ(pieces, 3);
  run_in_pieces(work, 10, 10, [&] { pieces++; });
  EXPECT_EQ(pieces, 4);
}

}  // namespace
}  // namespace hcomm::bench::overlap
