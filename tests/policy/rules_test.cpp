// SPDX-License-Identifier: Apache-2.0
#include "policy/rules.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "base/error.h"

namespace hcomm::policy {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_rules(text, "policy.conf");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.text();
  }
  return "none";
}

void expect_error(std::string_view text, std::string_view part) {
  const std::string error = error_of(text);
  EXPECT_NE(error.find(part), std::string::npos) << "said: " << error;
}

TEST(Rules, ReadsTuningAndPathRules) {
  const Rules rules = parse_rules(R"(# made by hcc-bench
[tuning]
collective=allreduce, ranks=8, size<4KiB -> algorithm=direct   # small
  collective!=barrier,ranks>=2 , ranks <= 64, dtype=float32 -> tile=512K , priority=-3

[path_rule]
match size>=1MB -> algorithm=ring, tile=2MiB, priority=10
match)"
                                  "\tsize>1,dtype!=int8 -> algorithm=chain\n"
                                  "# the end, without a new line",
                                  "policy.conf");
  ASSERT_EQ(rules.rules.size(), 4u);
  const Rule& small = rules.rules[0];
  EXPECT_EQ(small.line, 3u);
  EXPECT_EQ(small.text, "collective=allreduce, ranks=8, size<4KiB -> algorithm=direct");
  EXPECT_EQ(small.algorithm, "direct");
  ASSERT_EQ(small.conditions.size(), 3u);
  EXPECT_EQ(small.conditions[0].subject, Subject::collective);
  EXPECT_EQ(small.conditions[2].comparison, Comparison::less);
  EXPECT_EQ(small.conditions[2].number, 4096u);
  const Rule& tile = rules.rules[1];
  EXPECT_EQ(tile.algorithm, "");
  EXPECT_EQ(tile.tile_bytes, 512u << 10);
  EXPECT_EQ(tile.priority, -3);
  ASSERT_EQ(tile.conditions.size(), 4u);
  EXPECT_EQ(tile.conditions[0].comparison, Comparison::unequal);
  EXPECT_EQ(tile.conditions[1].comparison, Comparison::at_least);
  EXPECT_EQ(tile.conditions[2].comparison, Comparison::at_most);
  EXPECT_EQ(tile.conditions[3].subject, Subject::dtype);
  EXPECT_EQ(rules.rules[2].conditions[0].number, 1'000'000u);
  EXPECT_EQ(rules.rules[3].algorithm, "chain");
  EXPECT_EQ(rules.rules[3].line, 8u);
}

TEST(Rules, TheWholePlanAndItsLinks) {
  const Rules rules = parse_rules(
      "[tuning]\nlink=tcp, size>=1M -> algorithm=ring, tile=whole, window=7\nlink!=shm -> window=1",
      "policy.conf");
  ASSERT_EQ(rules.rules.size(), 2u);
  const Rule& first = rules.rules[0];
  EXPECT_EQ(first.conditions[0].subject, Subject::link);
  EXPECT_EQ(kLinks[first.conditions[0].number], "tcp");
  EXPECT_EQ(first.tile_bytes, kWhole);
  EXPECT_EQ(first.window, 7u);
  EXPECT_EQ(rules.rules[1].window, 1u);
  EXPECT_EQ(rules.rules[1].conditions[0].comparison, Comparison::unequal);
}

TEST(Rules, EmptyAndBlankFilesHoldNoRule) {
  EXPECT_TRUE(parse_rules("", "f").rules.empty());
  EXPECT_TRUE(parse_rules("\n\r\n \t\n# only words\n[tuning]\n[path_rule]", "f").rules.empty());
  EXPECT_TRUE(load_rules("/dev/null").rules.empty());
}

TEST(Rules, FaultsTellFileLineColumnAndWhatIsAllowed) {
  expect_error("[tunning]",
               "policy.conf:1:1: unknown section '[tunning]'; there are: path_rule "
               "fallback tuning; did you mean tuning?");
  expect_error("ranks=2 -> algorithm=ring",
               "policy.conf:1:1: 'ranks=2 -> algorithm=ring' stands "
               "before any section");
  expect_error("[tuning]\n\n  rank=2 -> algorithm=ring",
               "policy.conf:3:3: unknown condition 'rank'");
  expect_error("[tuning]\nrank=2 -> algorithm=ring", "did you mean ranks?");
  expect_error("[tuning]\nranks=2 -> algorithm=rign",
               "policy.conf:2:22: unknown algorithm 'rign'; there are: ");
  expect_error("[tuning]\nranks=2 -> algorithm=rign", "did you mean ring?");
  expect_error("[tuning]\nranks=2 -> algoritm=ring", "policy.conf:2:12: unknown action");
  expect_error("[tuning]\nranks=2, -> tile=1M", "policy.conf:2:10: an empty condition");
  expect_error("[tuning]\nranks=2 -> tile=1M,,", "an empty action");
  expect_error("[tuning]\n -> tile=1M", "an empty condition");
  expect_error("[tuning]\nranks=2 ->", "an empty action");
  expect_error("[tuning]\nranks=2", "has no '->'");
  expect_error("[tuning]\nranks -> tile=1M", "'ranks' is no condition: it compares nothing");
  expect_error("[tuning]\nranks= -> tile=1M", "'ranks=' has no value");
  expect_error("[tuning]\nranks=-1 -> tile=1M", "policy.conf:2:7: '-1' is no number of ranks");
  expect_error("[tuning]\nranks=4294967296 -> tile=1M", "is no number of ranks");
  expect_error("[tuning]\nranks=2x -> tile=1M", "is no number of ranks");
  expect_error("[tuning]\nsize<4KX -> tile=1M", "policy.conf:2:6: size '4KX': unknown unit");
  expect_error("[tuning]\nsize<99999999999999999999 -> tile=1M", "too large");
  expect_error("[tuning]\nranks=2 -> tile=0", "a tile of no bytes");
  expect_error("[tuning]\nranks=2 -> tile>=1M", "an action is set by =");
  expect_error("[tuning]\nranks=2 -> priority=9223372036854775808", "is no priority");
  expect_error("[tuning]\ncollective<barrier -> tile=1M", "compared by = and != only");
  expect_error("[tuning]\ncollective=allredcue -> tile=1M", "did you mean all_reduce?");
  expect_error("[tuning]\ncollective=point_to_point -> tile=1M", "unknown collective");
  expect_error("[tuning]\nlink=tpc -> tile=1M",
               "policy.conf:2:6: unknown link 'tpc'; there are: shm");
  expect_error("[tuning]\nlink<tcp -> tile=1M", "compared by = and != only");
  expect_error("[tuning]\nranks=2 -> window=8", "policy.conf:2:19: 8 is not within 1 to 7");
  expect_error("[tuning]\nranks=2 -> window=0", "0 is not within 1 to 7");
  expect_error("[tuning]\nranks=2 -> window=x", "'x' is no number of tiles");
  expect_error("[tuning]\ndtype=float23 -> tile=1M", "policy.conf:2:7: unknown type 'float23'");
  expect_error("[tuning]\ncollective=barrier -> algorithm=ring",
               "policy.conf:2:1: barrier has no algorithm 'ring'; there are: ");
  expect_error("[path_rule]\nranks=2 -> tile=1M", "a rule reads 'match COND");
  expect_error("[path_rule]\nmatchranks=2 -> tile=1M", "a rule reads 'match COND");
}

TEST(Rules, WhatIsNotOfferedIsRefusedByName) {
  expect_error("[path_rule]\nmatch vendor=nvidia -> priority=10, enable_nvlink=true",
               "policy.conf:2:7: the condition vendor is not offered in this version");
  expect_error("[path_rule]\nmatch ranks=2 -> compression=zstd",
               "the action compression is not offered in this version");
  expect_error("[fallback]\ntimeout=100ms -> switch_to=pcie",
               "rules of [fallback] are not offered in this version");
}

// CFG-05 of the fault list: empty and blank fields, long lines, NUL bytes, numbers out of range.
TEST(Rules, CFG_05_GarbageIsRefusedWithItsLine) {
  expect_error("[tuning]\n,,,", "policy.conf:2:");
  expect_error("[tuning]\nallreduce,,ring", "policy.conf:2:");
  expect_error("[tuning]\n" + std::string(65536, 'x'), "a line of 65536 bytes; at most 4096");
  expect_error(std::string("[tuning]\nranks=2\0 -> tile=1M", 29), "a control byte 0x00");
  expect_error("[tuning]\nranks=2 -> tile=-1", "policy.conf:2:17: size '-1'");
  expect_error("[tuning]\nranks=2 -> tile=\x1b[31m", "a control byte 0x1b");
  expect_error(std::string(2 << 20, '\n'), "a policy file has at most 1048576");
  EXPECT_EQ(error_of("[tuning]\n->\n").find('\x1b'), std::string::npos);
}

TEST(Rules, AnyBytesAreSafe) {
  constexpr std::string_view kPieces[] = {
      "match ", "->",         ",",           "=",    "<",    ">=", "!=",    "#",
      " #",     "[tuning]",   "[path_rule]", "]",    "[",    "\n", "ranks", "2",
      "size",   "4KiB",       "algorithm",   "ring", "tile", " ",  "\t",    "\xff",
      "-",      "collective", "allreduce",   "\r",   "*"};
  const uint64_t seed = 20260131;
  std::mt19937_64 random(seed);
  size_t accepted = 0;
  for (int round = 0; round < 20000; round++) {
    std::string text = round % 2 == 0 ? "[tuning]\n" : "";
    for (uint64_t i = random() % 16; i > 0; i--)
      if (random() % 20 == 0)
        text += static_cast<char>(random());
      else
        text += kPieces[random() % std::size(kPieces)];
    accepted += error_of(text) == "none";
  }
  std::printf("seed %lu: %zu of 20000 accepted\n", static_cast<unsigned long>(seed), accepted);
}

TEST(Rules, FilesThatCannotBeReadAreNamed) {
  for (const char* path : {"/nonexistent/policy.conf", "/"}) {
    try {
      load_rules(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_NE(error.text().find(std::string("read policy file ") + path), std::string::npos)
          << error.text();
    }
  }
}

TEST(Rules, EndlessFilesAreCut) {
  EXPECT_THROW(load_rules("/dev/zero"), Error);
}

TEST(Wishes, OneForAllOrOneEach) {
  EXPECT_TRUE(parse_wishes("").empty());
  EXPECT_TRUE(parse_wishes("  ").empty());
  const std::vector<Wish> wishes = parse_wishes("ring, allreduce=direct ,broadcast=chain");
  ASSERT_EQ(wishes.size(), 3u);
  EXPECT_FALSE(wishes[0].collective.has_value());
  EXPECT_EQ(wishes[0].algorithm, "ring");
  EXPECT_EQ(wishes[1].collective, schedule::Collective::all_reduce);
  EXPECT_EQ(wishes[1].algorithm, "direct");
  EXPECT_EQ(wishes[2].collective, schedule::Collective::broadcast);
}

TEST(Wishes, UnknownNamesTellWhatExists) {
  const auto error = [](std::string_view text) {
    try {
      parse_wishes(text);
    } catch (const Error& caught) {
      return caught.text();
    }
    return std::string("none");
  };
  EXPECT_NE(error("rign").find("a collective has no algorithm 'rign'; there are: "),
            std::string::npos);
  EXPECT_NE(error("barrier=ring").find("barrier has no algorithm 'ring'; there are: "),
            std::string::npos)
      << error("barrier=ring");
  EXPECT_NE(error("allredcue=ring").find("did you mean all_reduce?"), std::string::npos);
  EXPECT_NE(error("ring,,chain").find("no algorithm ''"), std::string::npos);
  EXPECT_NE(error("=ring").find("unknown collective ''"), std::string::npos);
  EXPECT_NE(error("all_reduce=").find("no algorithm ''"), std::string::npos);
}

TEST(Wishes, CollectivesHaveTheirUsualSpellings) {
  for (const char* text : {"all_reduce", "allreduce", "all-reduce"})
    EXPECT_EQ(collective_named(text), schedule::Collective::all_reduce);
  EXPECT_EQ(collective_named("reducescatter"), schedule::Collective::reduce_scatter);
  EXPECT_FALSE(collective_named("point_to_point"));
  EXPECT_FALSE(collective_named(""));
}

}  // namespace
}  // namespace hcomm::policy
