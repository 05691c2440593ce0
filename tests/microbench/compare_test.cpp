// SPDX-License-Identifier: Apache-2.0
// The comparison of microbenchmarks over made-up times.
#include "microbench/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace hcomm::microbench {
namespace {

using cli::Json;

std::string document(const std::string& name, const std::vector<double>& times,
                     const char* unit = "us") {
  Json json = {{"context", Json::object()}, {"benchmarks", Json::array()}};
  for (const double time : times)
    json["benchmarks"].push_back({{"name", name},
                                  {"run_type", "iteration"},
                                  {"real_time", 10 * time},
                                  {"cpu_time", time},
                                  {"time_unit", unit}});
  json["benchmarks"].push_back({{"name", name + "_median"}, {"run_type", "aggregate"}});
  json["benchmarks"].push_back({{"name", "broken"}, {"error_occurred", true}});
  return json.dump();
}

TEST(Microbench, TimesAreNanosecondsOfTheRepetitionsAlone) {
  const std::string texts[] = {document("a", {1, 2}), document("b/real_time", {1}, "ms"),
                               document("a", {3})};
  const Times times = times_of(bundle(texts));
  EXPECT_EQ(times, (Times{{"a", {1000, 2000, 3000}}, {"b/real_time", {1e7}}}));
}

TEST(Microbench, WhatIsNoResultIsRefused) {
  for (const char* text : {"", "{}", "[]", "{\"benchmarks\": "}) {
    const std::string texts[] = {text};
    EXPECT_THROW(bundle(texts), Error) << text;
  }
  EXPECT_THROW(times_of(Json::object()), Error);
  EXPECT_THROW(times_of(Json::parse(R"({"schema": "hcomm-microbench", "runs": [1]})")), Error);
  EXPECT_THROW(read_times("/nonexistent"), Error);
  const std::string texts[] = {document("a", {1}, "weeks")};
  EXPECT_THROW(times_of(bundle(texts)), Error);
}

std::vector<double> around(double middle) {
  std::vector<double> times;
  for (int i = -3; i <= 3; i++) times.push_back(middle * (1 + 0.001 * i));
  return times;
}

TEST(Microbench, OnlyWhatChangedIsTold) {
  const Times base{
      {"same", around(10)}, {"slow", around(10)}, {"fast", around(10)}, {"gone", around(10)}};
  const Times now{
      {"same", around(10.2)}, {"slow", around(12)}, {"fast", around(8)}, {"new", around(10)}};
  const Comparison found = compare(base, now, 0.05);
  EXPECT_EQ(found.compared, 3u);
  EXPECT_EQ(found.slower, 1u);
  EXPECT_EQ(found.added, 1u);
  EXPECT_EQ(found.gone, 1u);
  ASSERT_EQ(found.changes.size(), 2u);
  EXPECT_EQ(found.changes[1].name, "slow");
  EXPECT_NEAR(found.changes[1].ratio, 1.2, 1e-9);
  const std::string text = text_of(found, 0.05);
  EXPECT_NE(text.find("+20.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("same"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 3 cases slower by more than 5 %, 1 faster, 1 not in the base, 1 of it "
                      "not run\n"),
            std::string::npos)
      << text;
}

TEST(Microbench, ChanceIsNoChange) {
  // The median has moved, the least has not: the machine was busy.
  EXPECT_TRUE(
      compare({{"a", {10, 10, 10, 10, 10}}}, {{"a", {10, 20, 20, 20, 20}}}, 0.05).changes.empty());
  // Too few to tell.
  EXPECT_TRUE(compare({{"a", {10, 11}}}, {{"a", {20, 21}}}, 0.05).changes.empty());
  EXPECT_EQ(compare({{"a", around(10)}}, {{"a", around(20)}}, 0.05).slower, 1u);
}

}  // namespace
}  // namespace hcomm::microbench
