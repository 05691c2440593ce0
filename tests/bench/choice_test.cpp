// SPDX-License-Identifier: Apache-2.0
// hcc-bench --sweep: what is made of the times, and how it is written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "hcc-bench/choice/writer.h"

namespace hcomm::choice {
namespace {

using cli::Json;

Rival rival(std::string algorithm, std::string plan, std::vector<double> turns_us) {
  const std::string actions = algorithm.empty() ? "" : "algorithm=" + algorithm;
  return {std::move(algorithm), actions, std::move(plan), std::move(turns_us), 0};
}

Cell cell(std::vector<Rival> rivals, size_t bytes = 1024) {
  Cell cell;
  cell.series.operation = "allreduce";
  cell.series.type = "float32";
  cell.series.ranks = 4;
  cell.bytes = bytes;
  cell.rivals = std::move(rivals);
  return cell;
}

std::vector<double> times(double us, size_t turns = 9) {
  return std::vector<double>(turns, us);
}

// The choice takes `us`, the best forced plan, another one, 10 us.
Cell against_ten(double us, size_t turns = 9) {
  return cell({rival("", "tree shm", times(us, turns)), rival("tree", "tree shm", times(us, turns)),
               rival("ring", "ring shm", times(10, turns))});
}

TEST(Judge, TheBestForcedOneAndTheRatioToIt) {
  const Cell slow = against_ten(12);
  const auto judged = judge(slow);
  ASSERT_TRUE(judged);
  EXPECT_EQ(slow.rivals[judged->best].algorithm, "ring");
  EXPECT_DOUBLE_EQ(judged->ratio.value, 1.2);
  EXPECT_EQ(judged->verdict, Verdict::worse);
  EXPECT_EQ(judge(against_ten(10.4))->verdict, Verdict::ok);
  EXPECT_EQ(judge(against_ten(9))->verdict, Verdict::best);  // it is the best itself
}

TEST(Judge, TheSamePlanIsNoWorseChoice) {
  const Cell same = cell({rival("", "ring shm", times(20)), rival("ring", "ring shm", times(10)),
                          rival("tree", "tree shm", times(15))});
  EXPECT_EQ(judge(same)->verdict, Verdict::best);
}

TEST(Judge, WhatIsNotSureIsNoise) {
  const Cell noisy = cell({rival("", "tree shm", {8, 20, 9, 20, 9, 20, 9, 20, 20}),
                           rival("ring", "ring shm", times(10))});
  EXPECT_GT(judge(noisy)->ratio.value, kOutlier);
  EXPECT_EQ(judge(noisy)->verdict, Verdict::noise);
  // All of five turns say so, but five turns may do so by chance.
  EXPECT_EQ(judge(against_ten(20, kLeastTurns - 1))->verdict, Verdict::noise);
  EXPECT_EQ(judge(against_ten(20, kLeastTurns))->verdict, Verdict::worse);
}

// The state of the machine changes under all of them: turns of one round are compared.
TEST(Judge, TurnsOfOneRoundArePaired) {
  const Cell drifting = cell({rival("", "tree shm", {10, 20, 40, 10, 20, 40, 10, 20, 40}),
                              rival("ring", "ring shm", {8, 16, 32, 8, 16, 32, 8, 16, 32})});
  const auto judged = judge(drifting);
  EXPECT_DOUBLE_EQ(judged->ratio.value, 1.25);
  EXPECT_DOUBLE_EQ(judged->ratio.sure.low, 1.25);
  EXPECT_EQ(judged->verdict, Verdict::worse);
}

TEST(Judge, NothingToCompareIsNothing) {
  EXPECT_FALSE(judge(cell({rival("", "ring shm", times(10))})));
  EXPECT_FALSE(judge(cell({rival("", "ring shm", {}), rival("ring", "ring shm", {})})));
  EXPECT_FALSE(judge(cell({rival("", "ring shm", {}), rival("ring", "ring shm", {1})})));
}

TEST(TallyOf, CountsAndNamesTheWorst) {
  const std::vector<Cell> cells = {against_ten(9), against_ten(10.4), against_ten(11.2),
                                   cell({rival("", "tree", times(1))})};
  const Tally seen = tally(cells);
  EXPECT_EQ(seen.cells, 3u);
  EXPECT_EQ(seen.good, 2u);
  EXPECT_EQ(seen.outliers, 0u);
  EXPECT_FALSE(seen.reached());
  EXPECT_EQ(seen.text(),
            "choice within 5 % of the best or within noise in 2 of 3 cells (67 %), worst 1.12 at "
            "allreduce 1KiB (worse)");
}

TEST(TallyOf, IsReachedAt95PercentWithoutAnOutlier) {
  std::vector<Cell> cells(19, against_ten(9));
  cells.push_back(against_ten(11));
  EXPECT_TRUE(tally(cells).reached());
  cells.back() = against_ten(12);
  EXPECT_EQ(tally(cells).outliers, 1u);
  EXPECT_FALSE(tally(cells).reached());
  EXPECT_TRUE(tally({}).reached());
  EXPECT_EQ(tally({}).text().find("nan"), std::string::npos);
}

std::string written(const std::string& format, const std::vector<Cell>& cells) {
  char path[] = "/tmp/hcc-choice-test-XXXXXX";
  ::close(mkstemp(path));
  {
    bench::Sink sink(path);
    const auto writer = choice::make_writer(format, sink, {});
    writer->begin({});
    for (const Cell& each : cells) writer->cell(each);
    writer->end({tally(cells), ""});
  }
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  unlink(path);
  return all.str();
}

TEST(Writers, JsonHasEveryTurnAndTheVerdict) {
  const Json json = Json::parse(written("json", {against_ten(12), against_ten(9)}));
  EXPECT_EQ(json["schema"], "hcc-bench-sweep");
  ASSERT_EQ(json["cells"].size(), 2u);
  const Json& first = json["cells"][0];
  EXPECT_EQ(first["verdict"], "worse");
  EXPECT_EQ(first["best"], "ring");
  ASSERT_EQ(first["plans"].size(), 3u);
  EXPECT_TRUE(first["plans"][0]["forced"].is_null());
  EXPECT_EQ(first["plans"][2]["turns_us"].size(), 9u);
  EXPECT_EQ(json["end"]["good"], 1);
  EXPECT_EQ(json["end"]["complete"], true);
}

TEST(Writers, NdjsonIsALineEach) {
  std::stringstream lines(written("ndjson", {against_ten(12), against_ten(9)}));
  int count = 0;
  for (std::string line; std::getline(lines, line); count++)
    EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(count, 4);
}

TEST(Writers, CsvHasALineForEachPlan) {
  const std::string text = written("csv", {against_ten(12)});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3);
  EXPECT_TRUE(text.starts_with("operation,dtype,redop,root,place,ranks,bytes,best,")) << text;
}

TEST(Writers, TheTableEndsWithTheTally) {
  for (const char* format : {"table", "md"}) {
    const std::string text = written(format, {against_ten(12)});
    EXPECT_NE(text.find("worse"), std::string::npos) << text;
    EXPECT_NE(text.find("ring shm"), std::string::npos) << text;
    const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
    EXPECT_NE(last.find("choice within 5 %"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hcomm::choice
