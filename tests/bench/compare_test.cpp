// SPDX-License-Identifier: Apache-2.0
// The pure parts of hcc-bench compare: states, pairs, ratios, intervals, what is written and drawn;
// and the data of the harness.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "cli/json.h"
#include "hcc-bench/compare/plot.h"
#include "hcc-bench/compare/result.h"
#include "hcc-bench/compare/table.h"
#include "hcc-bench/compare/writer.h"
#include "hcc-bench/measure/load.h"
#include "hcc-bench/peers/data.h"
#include "support/shell.h"

namespace hcomm::compare {
namespace {

using cli::Json;

constexpr double kNear = 30, kFar = 150;

Turn turn(int round, double us, double before = kNear, double after = -2) {
  Turn turn;
  turn.round = round;
  turn.measured = {us, us * 1.1, us * 2, 10, 1, 0, before, after == -2 ? before : after};
  return turn;
}

Cell cell_of(std::vector<Series> series, size_t bytes = 1024) {
  return {"shm", bench::Operation::all_to_all, 4, bytes, std::move(series)};
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(State, FromTwoProbes) {
  EXPECT_EQ(state_of(30, 45), State::near);
  EXPECT_EQ(state_of(145, 160), State::far);
  EXPECT_EQ(state_of(30, 160), State::mixed);
  EXPECT_EQ(state_of(-1, 30), State::unknown);
  EXPECT_EQ(state_of(30, -1), State::unknown);
}

TEST(Figure, OfOneStateOnly) {
  const Series series{"x", "", {turn(0, 4), turn(1, 2), turn(2, 3), turn(3, 1, kFar)}, ""};
  const auto near = figure(series, State::near);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->min_us, 2);
  EXPECT_DOUBLE_EQ(near->median_us, 3.3);
  EXPECT_EQ(near->turns, 3U);
  EXPECT_EQ(figure(series, State::far)->min_us, 1);
  EXPECT_FALSE(figure(series, State::unknown));
}

TEST(Interval, OfEqualRatiosIsAPoint) {
  const double same[] = {1.2, 1.2, 1.2};
  const auto sure = interval(same);
  ASSERT_TRUE(sure);
  EXPECT_NEAR(sure->low, 1.2, 1e-9);
  EXPECT_NEAR(sure->high, 1.2, 1e-9);
  EXPECT_FALSE(interval(std::span(same, 1)));
  EXPECT_FALSE(interval({}));
}

// By hand: logarithms 0 and 1, mean 0.5, deviation 0.7071, half width 12.706 * 0.5.
TEST(Interval, IsStudents) {
  const double two[] = {1, std::exp(1.0)};
  const auto sure = interval(two);
  ASSERT_TRUE(sure);
  EXPECT_NEAR(std::log(sure->low), 0.5 - 6.353, 1e-3);
  EXPECT_NEAR(std::log(sure->high), 0.5 + 6.353, 1e-3);
  const std::vector<double> many(100, 2.0);
  EXPECT_NEAR(interval(many)->high, 2, 1e-9);
}

// Rounds are paired, so that what slows down a whole round says nothing.
TEST(Ratio, PairsRoundsOfOneState) {
  const Series ours{"hcomm", "", {turn(0, 2), turn(1, 20), turn(2, 2, kFar)}, ""};
  const Series peer{"p", "", {turn(0, 1), turn(1, 10), turn(2, 1, kNear)}, ""};
  const auto seen = ratio(ours, peer, State::near);
  ASSERT_TRUE(seen);
  EXPECT_DOUBLE_EQ(seen->min, 2);
  ASSERT_TRUE(seen->sure);
  EXPECT_NEAR(seen->sure->low, 2, 1e-9);
  EXPECT_TRUE(seen->lost());
  EXPECT_FALSE(ratio(ours, peer, State::far));
  // Of one state, but of no common round: a ratio without an interval.
  const Series other{"p", "", {turn(5, 1)}, ""};
  EXPECT_FALSE(ratio(ours, other, State::near)->sure);
}

TEST(Rows, TakeTheBestPeerOfEachState) {
  Series wrong{"wrong", "", {turn(0, 0.1)}, ""};
  wrong.turns[0].measured.errors = 1;
  const Cell cell = cell_of({{"hcomm", "", {turn(0, 2), turn(1, 2, kFar)}, ""},
                             {"a", "", {turn(0, 4), turn(1, 9, kFar)}, ""},
                             {"b", "", {turn(0, 5), turn(1, 8, kFar)}, ""},
                             {"c", "", {turn(0, 1, kNear, kFar)}, ""},
                             wrong,
                             {"dead", "", {}, "ended"}});
  const std::vector<Row> rows = rows_of(cell);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].state, State::near);
  EXPECT_EQ(cell.series[rows[0].peer].subject, "a");
  EXPECT_DOUBLE_EQ(rows[0].ratio->min, 0.5);
  EXPECT_EQ(rows[1].state, State::far);
  EXPECT_EQ(cell.series[rows[1].peer].subject, "b");
}

TEST(Rows, OfOneSideAreLeftOutWhereOthersHaveBoth) {
  const Cell cell =
      cell_of({{"hcomm", "", {turn(0, 2)}, ""}, {"a", "", {turn(0, 4), turn(1, 9, kFar)}, ""}});
  ASSERT_EQ(rows_of(cell).size(), 1U);
  EXPECT_EQ(rows_of(cell)[0].state, State::near);
}

TEST(Rows, WithoutUsOrWithoutPeersHaveNoRatio) {
  const auto alone = rows_of(cell_of({{"hcomm", "", {turn(0, 2)}, ""}}));
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_FALSE(alone[0].ratio);
  const auto failed = rows_of(cell_of({{"hcomm", "", {}, "ended"}, {"a", "", {turn(0, 1)}, ""}}));
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_FALSE(failed[0].ours);
  EXPECT_FALSE(failed[0].ratio);
}

std::vector<Cell> two_cells() {
  return {cell_of({{"hcomm", "1", {turn(0, 1), turn(1, 1)}, ""},
                   {"a<b>", "A 1", {turn(0, 4), turn(1, 4)}, ""}}),
          cell_of({{"hcomm", "1", {turn(0, 4), turn(1, 4.4)}, ""},
                   {"a<b>", "A 1", {turn(0, 1), turn(1, 1.1)}, "ended, \x1b[31mred"}},
                  1 << 20)};
}

TEST(Summary, MeanWorstAndLost) {
  const std::vector<Summary> list = summaries(two_cells());
  ASSERT_EQ(list.size(), 1U);
  EXPECT_NEAR(list[0].mean, 1, 1e-9);  // of 1/4 and 4
  EXPECT_EQ(list[0].rows, 2U);
  EXPECT_EQ(list[0].lost, 1U);
  EXPECT_EQ(list[0].worst, "alltoall 4 ranks 1MiB near: 4.00 (a<b>)");
  EXPECT_TRUE(summaries({}).empty());
}

std::string written(const std::string& format, const std::vector<Cell>& cells) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "out").string();
  {
    bench::Sink sink(path);
    const auto writer = compare::make_writer(format, sink, {});
    writer->begin({});
    for (const Cell& cell : cells) writer->cell(cell);
    writer->end({summaries(cells), "interrupted"});
  }
  return test::file_text(path);
}

TEST(Writers, Table) {
  const std::string text = written("table", two_cells());
  EXPECT_TRUE(holds(text, "0.25")) << text;
  EXPECT_TRUE(holds(text, "lost")) << text;
  EXPECT_TRUE(holds(text, "geometric mean of the ratios 1.000 (2 rows), lost 1; worst")) << text;
  EXPECT_TRUE(holds(text, "not complete: interrupted")) << text;
  EXPECT_FALSE(holds(text, "\x1b")) << text;
  EXPECT_TRUE(holds(written("md", two_cells()), "| ---: |"));
}

TEST(Writers, AFaultIsToldOnce) {
  std::vector<Cell> cells = two_cells();
  cells.push_back(cells[1]);
  const std::string text = written("table", cells);
  EXPECT_EQ(text.find("red"), text.rfind("red")) << text;
}

TEST(Writers, JsonHasAllTurns) {
  const Json json = Json::parse(written("json", two_cells()));
  EXPECT_EQ(json["schema"], "hcc-bench-compare");
  ASSERT_EQ(json["cells"].size(), 2U);
  const Json& cell = json["cells"][1];
  EXPECT_EQ(cell["bytes"], 1 << 20);
  EXPECT_EQ(cell["rows"][0]["best_peer"], "a<b>");
  EXPECT_EQ(cell["rows"][0]["lost"], true);
  EXPECT_EQ(cell["subjects"][1]["turns"].size(), 2U);
  EXPECT_EQ(cell["subjects"][1]["turns"][0]["core_distance_before_ns"], 30);
  EXPECT_EQ(json["summaries"][0]["lost"], 1);
  EXPECT_EQ(json["end"]["complete"], false);
}

TEST(Writers, CsvHasALineForEachLibraryAndState) {
  const std::string text = written("csv", two_cells());
  std::istringstream lines(text);
  std::string title, line;
  std::getline(lines, title);
  EXPECT_TRUE(title.starts_with("transport,operation,ranks,bytes,state,subject,version,turns,"));
  size_t count = 0;
  for (; std::getline(lines, line); count++)
    EXPECT_EQ(std::count(line.begin(), line.end(), ',') - (holds(line, "\"ended, ") ? 1 : 0),
              std::count(title.begin(), title.end(), ','))
        << line;
  EXPECT_EQ(count, 4U);
  EXPECT_TRUE(holds(text, ",a<b>,A 1,2,1.0,1.155,2.1,4.0,")) << text;
  EXPECT_TRUE(holds(text, ",1.0;1.1,")) << text;
}

TEST(Plot, HasAPanelAndALineALibrary) {
  std::vector<Cell> cells = two_cells();
  cells.push_back(cell_of({{"hcomm", "", {turn(0, 1)}, ""}}, 0));  // a barrier: no panel
  const std::string text = plot(cells);
  EXPECT_TRUE(text.starts_with("<svg xmlns="));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_TRUE(holds(text, "alltoall, 4 ranks, shm"));
  EXPECT_TRUE(holds(text, "a&lt;b&gt;"));
  EXPECT_FALSE(holds(text, "a<b>"));
  size_t lines = 0;
  for (size_t at = 0; (at = text.find("<polyline", at)) != std::string::npos; at++) lines++;
  EXPECT_EQ(lines, 2U);
  EXPECT_FALSE(holds(text, "nan"));
  EXPECT_FALSE(holds(text, "inf"));
  EXPECT_TRUE(plot({}).ends_with("</svg>\n"));
}

// Sizes and times that are all alike still have an axis.
TEST(Plot, OfOneSpot) {
  const std::string text = plot(std::vector<Cell>{cell_of({{"hcomm", "", {turn(0, 1)}, ""}})});
  EXPECT_FALSE(holds(text, "nan"));
  EXPECT_FALSE(holds(text, "inf"));
}

TEST(Load, FromTheFirstLineOfStat) {
  const auto time = bench::parse_core_time("cpu  10 1 20 300 40 5 6 7 99 98");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->all, 389U);
  EXPECT_EQ(time->busy, 49U);
  EXPECT_FALSE(bench::parse_core_time("cpu0 1 2 3 4 5"));
  EXPECT_FALSE(bench::parse_core_time("cpu  1 2"));
  EXPECT_FALSE(bench::parse_core_time(""));
}

// The harness's check of each operation, with results made by hand, and one wrong element.
class PeerData : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PeerData, testing::Range(0, static_cast<int>(PEER_KINDS)),
                         [](const auto& each) { return peer_kind_names[each.param]; });

float value(size_t i, int rank) {
  return static_cast<float>(i % 13) + static_cast<float>(rank) + 1;
}

TEST_P(PeerData, RightIsRightAndOneElementIsSeen) {
  constexpr int kRanks = 3, kRank = 1;
  const auto kind = static_cast<peer_kind>(GetParam());
  constexpr size_t kBlock = 2777, kCount = kBlock * kRanks + 2;
  std::vector<float> send(kCount), recv(kCount);
  const peer_task task{kind, kRank, kRanks, kCount, kBlock, send.data(), recv.data()};
  peer_prepare(&task, 2, 0);
  if (kind != PEER_BARRIER) {
    EXPECT_GT(peer_verify(&task, kind == PEER_REDUCE ? kRank : 2), 0);
  }
  const auto sum = [](size_t i) { return value(i, 0) + value(i, 1) + value(i, 2); };
  for (size_t i = 0; i < kCount; i++) {
    const size_t block = i / kBlock, within = i % kBlock;
    if (kind == PEER_ALLREDUCE || kind == PEER_REDUCE) recv[i] = sum(i);
    if (kind == PEER_REDUCESCATTER && i < kBlock) recv[i] = sum(kBlock * kRank + i);
    if (kind == PEER_ALLGATHER) recv[i] = value(within, static_cast<int>(block));
    if (kind == PEER_ALLTOALL) recv[i] = value(kBlock * kRank + within, static_cast<int>(block));
    if (kind == PEER_BROADCAST) recv[i] = value(i, 2);
    if (kind == PEER_SENDRECV || kind == PEER_PINGPONG) recv[i] = value(i, 0);
  }
  const int root = kind == PEER_REDUCE ? kRank : 2;
  EXPECT_EQ(peer_verify(&task, root), 0);
  recv[kBlock - 1] += 1;
  EXPECT_EQ(peer_verify(&task, root), kind == PEER_BARRIER ? 0 : 1);
}

}  // namespace
}  // namespace hcomm::compare
