// SPDX-License-Identifier: Apache-2.0
// The launcher's pure parts.
#include <gtest/gtest.h>

#include <csignal>

#include "base/error.h"
#include "cli/text.h"
#include "hcc-launch/agent/binding.h"
#include "hcc-launch/agent/lines.h"
#include "hcc-launch/options.h"
#include "hcc-launch/output/core_file.h"
#include "hcc-launch/output/files.h"
#include "hcc-launch/plan.h"
#include "hcc-launch/verdict.h"

namespace hcomm::launch {
namespace {

std::string seen(std::initializer_list<std::string_view> reads) {
  LineSplitter lines;
  std::string text;
  const auto take = [&](const Piece& piece) {
    text += piece.begins ? "<" : "+";
    text += piece.text;
    text += piece.ends ? ">" : "~";
  };
  for (const std::string_view read : reads) {
    if (read == "(flush)")
      lines.flush(take);
    else
      lines.feed(read, 0, take);
  }
  return text;
}

TEST(LaunchLines, CutsAtNewlines) {
  EXPECT_EQ(seen({"a\nb\n"}), "<a><b>");
  EXPECT_EQ(seen({"a", "b\n", "\n"}), "<ab><>");
  EXPECT_EQ(seen({"a", "(flush)", "b", "(flush)", "c\nd"}), "<a~+b~+c>");
  EXPECT_EQ(seen({"(flush)"}), "");
  EXPECT_EQ(seen({"x\r\n"}), "<x\r>");
}

// By which the agent knows how long it has been held.
TEST(LaunchLines, TellsWhenWhatItHoldsHasBegun) {
  LineSplitter lines;
  const auto drop = [](const Piece&) {};
  EXPECT_TRUE(lines.feed("a", 0, drop));
  EXPECT_FALSE(lines.feed("b", 0, drop));
  EXPECT_TRUE(lines.feed("c\nd", 0, drop)) << "another line";
  EXPECT_FALSE(lines.feed("e\n", 0, drop));
  EXPECT_FALSE(lines.feed("", 0, drop));
}

TEST(LaunchLines, MemoryIsBounded) {
  const std::string piece(kMaxHeldBytes - 1, 'x');
  EXPECT_EQ(seen({piece, "y"}), "<" + piece + "y~");
}

TEST(LaunchNumbers, ReadsWhatItWrites) {
  for (const std::string text : {"0", "0-3", "1,3", "0-1,4-7,9"})
    EXPECT_EQ(numbers_text(parse_numbers(text)), text);
  EXPECT_EQ(parse_numbers("3,1,1-2"), (Numbers{1, 2, 3}));
  for (const std::string text : {"", "a", "1-", "-1", "3-1", "1,,2", "99999999999"})
    EXPECT_THROW(parse_numbers(text), Error) << text;
}

TEST(LaunchBinding, AFF_01_SharesAreEvenAndConsecutive) {
  std::vector<Cores> units;
  for (uint32_t i = 0; i < 8; i++) units.push_back({i});
  for (uint32_t ranks = 1; ranks <= 20; ranks++) {
    const auto shares = divide(units, ranks);
    ASSERT_EQ(shares.size(), ranks);
    size_t total = 0;
    for (const Cores& share : shares) {
      total += share.size();
      EXPECT_GE(share.size(), std::max<size_t>(8 / ranks, 1)) << ranks;
      EXPECT_LE(share.size(), 8 / ranks + 1) << ranks;
      EXPECT_EQ(share.back() - share.front() + 1, share.size());
    }
    EXPECT_EQ(total, std::max(8u, ranks));
  }
  EXPECT_EQ(divide(units, 2), (std::vector<Cores>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(LaunchBinding, UnitsCoverTheMaskExactly) {
  const Cores allowed = cores_of(0);
  ASSERT_FALSE(allowed.empty());
  for (const Unit unit : {Unit::core, Unit::numa}) {
    Cores all;
    for (const Cores& each : units_of(unit, allowed))
      all.insert(all.end(), each.begin(), each.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, allowed);
  }
}

TEST(LaunchWords, SplitAsAShellDoes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_words("a  b\tc"), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_words("'a b' \"c \\\" d\" e\\ f ''"), (Words{"a b", "c \" d", "e f", ""}));
  EXPECT_EQ(split_words("x'y'z"), (Words{"xyz"}));
  EXPECT_EQ(split_words("  "), Words{});
  EXPECT_THROW(split_words("'open"), Error);
  for (const std::string word : {"plain", "a b", "it's", "", "$x", "\n"})
    EXPECT_EQ(split_words(cli::shell_quoted(word)), Words{word});
}

Options parse(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(arguments);
}

TEST(LaunchOptions, Reads) {
  const Options options =
      parse({"-n4", "--label=rank", "--timeout", "1m", "-x", "A=[1]", "-x", "B={}", "--wrap",
             "0,2=gdb --args", "-vv", "prog", "-n", "9", "--label"});
  ASSERT_EQ(options.programs.size(), 1u);
  EXPECT_EQ(options.programs[0].ranks, 4u);
  EXPECT_EQ(options.programs[0].command, (std::vector<std::string>{"prog", "-n", "9", "--label"}));
  EXPECT_EQ(options.programs[0].exports, (std::vector<std::string>{"A=[1]", "B={}"}));
  EXPECT_EQ(options.label, Label::rank);
  EXPECT_EQ(options.timeout_ms, 60'000);
  EXPECT_EQ(options.common.verbosity, 2);
  ASSERT_EQ(options.wraps.size(), 1u);
  EXPECT_EQ(options.wraps[0].ranks, (std::vector<uint32_t>{0, 2}));
}

TEST(LaunchOptions, SeveralPrograms) {
  const Options options = parse({"-q", "-n", "2", "a", "x", ":", "-n", "3", "--wdir", "/", "b"});
  ASSERT_EQ(options.programs.size(), 2u);
  EXPECT_EQ(options.programs[1].ranks, 3u);
  EXPECT_EQ(options.programs[1].folder, "/");
  EXPECT_THROW(parse({"a", ":", "-q", "b"}), Error);
  EXPECT_THROW(parse({"a", ":"}), Error);
}

RankEnd ended(int code, int signal = 0) {
  RankEnd end;
  end.code = code;
  end.signal = signal;
  return end;
}

TEST(LaunchVerdict, EXI_07_TheFirstFailureCounts) {
  Verdict verdict(3);
  EXPECT_FALSE(verdict.rank_ended(0, ended(0)));
  EXPECT_TRUE(verdict.rank_ended(2, ended(3)));
  EXPECT_FALSE(verdict.rank_ended(1, ended(4)));
  verdict.job_ends(Cause::rank_failed, 2);
  EXPECT_EQ(verdict.exit_code(), 3);
  EXPECT_TRUE(verdict.failed(1));
}

TEST(LaunchVerdict, WhoIsToldToEndHasNotFailed) {
  Verdict verdict(2);
  verdict.rank_ended(0, ended(7));
  verdict.job_ends(Cause::rank_failed, 0);
  verdict.rank_ended(1, ended(0, SIGTERM));
  EXPECT_FALSE(verdict.failed(1));
  EXPECT_TRUE(verdict.ended_by_launcher(1));
  EXPECT_EQ(verdict.exit_code(), 7);
}

TEST(LaunchVerdict, WhoCrashesWhenToldToEndHasFailed) {
  Verdict verdict(6);
  verdict.job_ends(Cause::timeout, 0);
  const RankEnd ends[] = {ended(0, SIGSEGV), ended(3),         ended(128 + SIGTERM),
                          ended(0, SIGKILL), ended(0, SIGINT), ended(0)};
  for (uint32_t rank = 0; rank < 6; rank++) EXPECT_FALSE(verdict.rank_ended(rank, ends[rank]));
  for (const uint32_t rank : {0u, 1u, 4u}) EXPECT_TRUE(verdict.failed(rank)) << rank;
  for (const uint32_t rank : {2u, 3u}) EXPECT_TRUE(verdict.ended_by_launcher(rank)) << rank;
  EXPECT_FALSE(verdict.failed(5) || verdict.ended_by_launcher(5));
  EXPECT_FALSE(verdict.first_failure()) << "the time limit was first";
  EXPECT_EQ(verdict.exit_code(), 124);

  Verdict by_user(1);
  by_user.job_ends(Cause::user_signal, SIGINT);
  by_user.rank_ended(0, ended(0, SIGINT));
  EXPECT_TRUE(by_user.ended_by_launcher(0));
}

TEST(LaunchVerdict, CodesOfOtherEnds) {
  Verdict timeout(1);
  timeout.job_ends(Cause::timeout, 0);
  timeout.rank_ended(0, ended(0));
  EXPECT_EQ(timeout.exit_code(), 124);

  Verdict polite(2);
  polite.job_ends(Cause::user_signal, SIGTERM);
  polite.rank_ended(0, ended(0));
  polite.rank_ended(1, ended(0));
  EXPECT_EQ(polite.exit_code(), 0);

  Verdict stubborn(1);
  stubborn.job_ends(Cause::user_signal, SIGINT);
  stubborn.rank_ended(0, ended(0, SIGKILL));
  EXPECT_EQ(stubborn.exit_code(), 128 + SIGINT);
  EXPECT_EQ(signal_text(SIGSEGV), "SIGSEGV (11)");
}

TEST(LaunchCoreFile, Patterns) {
  CoreFacts facts{.pid = 77,
                  .outer_pid = 4077,
                  .uid = 1000,
                  .gid = 100,
                  .signal = 11,
                  .time_s = 1700000000,
                  .host = "n01",
                  .program = "/opt/a_program_of_long_name"};
  EXPECT_EQ(expand_core_pattern("core", false, facts), "core");
  EXPECT_EQ(expand_core_pattern("core", true, facts), "core.77");
  EXPECT_EQ(expand_core_pattern("%p/core", true, facts), "77/core");
  EXPECT_EQ(expand_core_pattern("/c/%h.%e.%P.%u.%g.%s.%t%%%", false, facts),
            "/c/n01.a_program_of_lo.4077.1000.100.11.1700000000%");
  EXPECT_EQ(expand_core_pattern("%E", false, facts), std::nullopt);
  facts.outer_pid.reset();
  EXPECT_EQ(expand_core_pattern("%P", false, facts), std::nullopt);
}

TEST(LaunchOutputFiles, Patterns) {
  Job job;
  job.host = "n01";
  job.id = "77";
  RankPlan plan;
  plan.rank = 12;
  plan.local_rank = 4;
  EXPECT_EQ(expand_pattern("%h/%R.out", job, plan, Stream::out), "n01/12.out");
  EXPECT_EQ(expand_pattern("%h/%R.out", job, plan, Stream::err), "n01/12.err");
  EXPECT_EQ(expand_pattern("%j-%r-%s%%", job, plan, Stream::err), "77-4-err%");
  EXPECT_EQ(expand_pattern("x", job, plan, Stream::err), "x.err");
  EXPECT_THROW(expand_pattern("%z", job, plan, Stream::out), Error);
  EXPECT_THROW(expand_pattern("50%", job, plan, Stream::out), Error);
}

}  // namespace
}  // namespace hcomm::launch
