// SPDX-License-Identifier: Apache-2.0
// hcc-bench as a process: alone, and as the ranks of hcc-launch.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

using cli::Json;
using Words = std::vector<std::string>;

// A variable of the job that runs this test must not reach the tool.
const Words kClean = {"HCOMM_RANK",   "HCOMM_SIZE",    "HCOMM_RECORDER_FD", "WORLD_SIZE", "RANK",
                      "SLURM_PROCID", "SLURM_STEP_ID", "PMI_RANK",          "PMI_SIZE"};

Ran bench(Words words, Words environment = {}) {
  words.insert(words.begin(), HCC_BENCH);
  environment.insert(environment.begin(), kClean.begin(), kClean.end());
  return run(Command{.words = std::move(words), .environment = std::move(environment)});
}

Command ranks(int count, Words words) {
  Command command;
  command.words = {HCC_LAUNCH, "-n",     std::to_string(count), "--label", "none", "--grace",
                   "60s",      HCC_BENCH};
  command.words.insert(command.words.end(), words.begin(), words.end());
  command.environment = kClean;
  command.limit_s = 100;
  return command;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> list;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) list.push_back(Json::parse(line));
  return list;
}

struct Scratch {
  Scratch() {
    char name[] = "/tmp/hcc-bench-test-XXXXXX";
    ::close(mkstemp(name));
    path = name;
  }
  ~Scratch() { unlink(path.c_str()); }
  std::string text() const {
    std::ifstream file(path);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  std::string path;
};

const Words kQuick = {"--iters", "3", "--warmup", "1"};

Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(BenchAlone, HelpVersionExplain) {
  for (const Words& words :
       {Words{"--help"}, {"-h"}, {"--version"}, {"--explain", "busbw"}, {"--explain", "size"}}) {
    const Ran ran = bench(words);
    EXPECT_EQ(ran.code, 0);
    EXPECT_FALSE(ran.out.empty());
    EXPECT_EQ(ran.err, "");
  }
}

// BEN-05: what makes no sense is a usage error, not a loop and not a nan.
TEST(BenchAlone, Ben05UsageErrors) {
  for (const Words& words : std::vector<Words>{{},
                                               {"alreduce"},
                                               {"allreduce", "--iters", "0"},
                                               {"allreduce", "--iters", "-1"},
                                               {"allreduce", "--warmup", "-1"},
                                               {"allreduce", "--batch", "0"},
                                               {"allreduce", "--max-time", "0"},
                                               {"allreduce", "--max-noise", "-1"},
                                               {"allreduce", "--sizes", "8:4"},
                                               {"allreduce", "--sizes", "1:8:x1"},
                                               {"allreduce", "--sizes", "1:8:+0"},
                                               {"allreduce", "--dtype", "float31"},
                                               {"allreduce", "--redop", "band"},
                                               {"reduce", "--root", "1"},
                                               {"pingpong"},
                                               {"allreduce", "--delay", "1"},
                                               {"allreduce", "--delay", "1:1ms"},
                                               {"allreduce", "--fail-if-slower", "5%"},
                                               {"allreduce", "--compare", "/nonexistent"},
                                               {"allreduce", "--peak", "/nonexistent"},
                                               {"allreduce", "--self-test", "--check", "off"},
                                               {"allreduce", "--json", "--csv"},
                                               {"allreduce", "--format", "md", "--csv"},
                                               {"allreduce", "--check", "--fit"},
                                               {"allreduce", "--bogus"}}) {
    const Ran ran = bench(words);
    EXPECT_EQ(ran.code, 2) << (words.empty() ? "" : words.back()) << ran.out;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("hcc-bench: ")) << ran.err;
  }
  EXPECT_TRUE(holds(bench({"allreduce", "--chek", "all"}).err, "did you mean --check?"));
  EXPECT_TRUE(
      holds(bench({"allreduce", "--check", "--fit"}).err, "--check needs a value: first|all|off"));
}

TEST(BenchAlone, Ben05DefinedOutput) {
  const Ran ran =
      bench(with({"all", "--sizes", "0,1,7", "--iters", "1", "--warmup", "0", "--csv"}, {}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(holds(ran.out, "nan"));
  EXPECT_FALSE(holds(ran.out, "inf"));
  EXPECT_TRUE(holds(ran.out, "\nallreduce,float32,sum,,out,1,0,0,0,1,"));
}

TEST(BenchAlone, P99OnlyFrom100Samples) {
  const Ran few = bench({"allreduce", "--sizes", "8", "--iters", "99", "--json"});
  EXPECT_TRUE(Json::parse(few.out)["rows"][0]["p99_us"].is_null()) << few.err;
  const Ran many = bench({"allreduce", "--sizes", "8", "--iters", "100", "--json"});
  EXPECT_TRUE(Json::parse(many.out)["rows"][0]["p99_us"].is_number()) << many.err;
}

TEST(BenchAlone, FormatsAndFiles) {
  Scratch scratch;
  const Ran ran = bench(with({"allreduce", "--sizes", "8,1K", "-o", scratch.path, "--ndjson",
                              "--timestamps", "--per-iter"},
                             kQuick));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "1KiB")) << ran.out;  // the table is shown as well
  const std::vector<Json> lines = lines_of(scratch.text());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1]["times_us"].size(), 3u);
  EXPECT_TRUE(holds(lines[1]["time"].get<std::string>(), "T"));
  EXPECT_EQ(lines[3]["complete"], true);
  EXPECT_TRUE(holds(bench(with({"allreduce", "--sizes", "8", "--md"}, kQuick)).out, "| ---: |"));
  EXPECT_EQ(bench(with({"allreduce", "-o", "/nonexistent/x"}, kQuick)).code, 3);
}

TEST(BenchAlone, NoEscapesInAPipe) {
  EXPECT_FALSE(holds(bench(with({"allreduce", "--sizes", "8"}, kQuick), {"NO_COLOR"}).out, "\x1b"));
  EXPECT_TRUE(
      holds(bench(with({"allreduce", "--sizes", "8", "--color", "always"}, kQuick)).out, "\x1b"));
}

TEST(BenchAlone, TooLargeIsRefusedWithWhatFits) {
  const Ran ran = bench({"allreduce", "--sizes", "8,64T"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(holds(ran.err, "does not fit")) << ran.err;
  const Ran fit = bench(with({"allreduce", "--sizes", "8,64T", "--fit", "--csv"}, kQuick));
  EXPECT_EQ(fit.code, 0) << fit.err;
  EXPECT_TRUE(holds(fit.err, "--fit")) << fit.err;
}

TEST(BenchAlone, AWorldThatIsNotTheOneLaunchedIsRefused) {
  EXPECT_EQ(bench(with({"allreduce", "--sizes", "8", "--expect-size", "2"}, kQuick)).code, 3);
  EXPECT_EQ(bench(with({"allreduce", "--sizes", "8", "--expect-size", "1"}, kQuick)).code, 0);
  // Two processes that each are a world of their own.
  const Ran ran = bench(with({"allreduce", "--sizes", "8"}, kQuick), {"SLURM_STEP_NUM_TASKS=2"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(holds(ran.err, "2 processes were started")) << ran.err;
}

TEST(BenchAlone, SaveAndCompare) {
  Scratch base;
  EXPECT_EQ(bench({"barrier", "--iters", "20", "--save", base.path}).code, 0);
  Json json = Json::parse(base.text());
  for (Json& row : json["rows"]) {  // a base that was a hundred times faster
    row["p50_us"] = row["p50_us"].get<double>() / 100;
    for (Json& time : row["times_us"]) time = time.get<double>() / 100;
  }
  std::ofstream(base.path) << json;
  const Ran gate =
      bench({"barrier", "--iters", "20", "--compare", base.path, "--fail-if-slower", "50%"});
  EXPECT_EQ(gate.code, 1) << gate.err;
  EXPECT_TRUE(holds(gate.err, "barrier")) << gate.err;
  EXPECT_EQ(bench({"barrier", "--iters", "20", "--compare", base.path}).code, 0);
}

TEST(BenchAlone, AGateThatComparedNothingIsUndecided) {
  Scratch base;
  ASSERT_EQ(bench(with({"allreduce", "--sizes", "8", "--save", base.path}, kQuick)).code, 0);
  const Words gate = {"allreduce", "--compare", base.path, "--fail-if-slower", "5%", "--sizes"};
  EXPECT_EQ(bench(with(with(gate, {"16"}), kQuick)).code, 5);
  const Ran other = bench(with(with(gate, {"16", "--dtype", "int8"}), kQuick));
  EXPECT_EQ(other.code, 5);
  EXPECT_TRUE(holds(other.err, "0 of 0 rows")) << other.err;
  EXPECT_TRUE(holds(other.err, "1 of it not run")) << other.err;
  EXPECT_EQ(bench(with({"allreduce", "--compare", base.path, "--sizes", "16"}, kQuick)).code, 0);
}

TEST(BenchAlone, AWrongRunLeavesTheBaseAlone) {
  Scratch base;
  std::ofstream(base.path) << "good";
  const Ran ran =
      bench(with({"allreduce", "--sizes", "1000", "--self-test", "--save", base.path}, kQuick));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(base.text(), "good");
  EXPECT_EQ(bench(with({"allreduce", "--save", "/nonexistent/base"}, kQuick)).code, 3);
}

// srun starts torchrun: the job is torchrun's, and so is its size.
TEST(BenchAlone, TheLaunchersCountAsInTheLibrary) {
  const Ran ran = bench(with({"allreduce", "--sizes", "8", "--csv"}, kQuick),
                        {"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "RANK=0",
                         "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "\nallreduce,")) << ran.out;
}

// Without hcc-launch's recorder only time tells a large operation from a hang.
TEST(BenchAlone, PatienceGrowsWithBytes) {
  const Words slow = {"allreduce", "--check",  "off", "--iters", "1",       "--batch",
                      "1",         "--warmup", "0",   "--delay", "0:300ms", "--hang-timeout",
                      "100ms",     "--sizes"};
  EXPECT_EQ(bench(with(slow, {"8"})).code, 4);
  const Ran large = bench(with(slow, {"64M"}));
  EXPECT_EQ(large.code, 0) << large.err;
}

TEST(BenchAlone, StreamsThatTakeNothing) {
  const auto in_shell = [](const std::string& script) { return shell(script, {HCC_BENCH}); };
  const Ran hang =
      in_shell("exec 2>&-; \"$1\" allreduce --sizes 8 --delay 0:1000s --hang-timeout 100ms --json");
  EXPECT_EQ(hang.code, 4);
  EXPECT_EQ(Json::parse(hang.out)["end"]["reason"], "hang") << hang.out;
  EXPECT_EQ(in_shell("exec 2>&-; \"$1\" alreduce").code, 2);
  EXPECT_EQ(in_shell("\"$1\" --help >/dev/full").code, 3);
  EXPECT_EQ(in_shell("\"$1\" allreduce --sizes 8 --iters 1 >/dev/full").code, 3);
}

TEST(BenchRanks, OneCorruptByteIsExit1) {
  for (const char* operation : {"allreduce", "alltoallv", "gather", "pingpong"}) {
    const Ran ran = run(ranks(3, with({operation, "--sizes", "1000", "--self-test"}, kQuick)));
    EXPECT_EQ(ran.code, 1) << operation << ran.out << ran.err;
    EXPECT_TRUE(holds(ran.out, "WRONG")) << ran.out;
    EXPECT_TRUE(holds(ran.err, "expected")) << ran.err;
  }
}

// BEN-07: every collective, sizes that divide by nothing, odd numbers of ranks (under
// AddressSanitizer where the tree is built so).
class BenchRanksN : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, BenchRanksN, testing::Values(3, 5, 6),
                         testing::PrintToStringParamName());

TEST_P(BenchRanksN, Ben07EveryOperation) {
  const Ran ran =
      run(ranks(GetParam(), {"all", "--sizes", "0,1,1000,100003", "--in-place", "both", "--iters",
                             "1", "--batch", "1", "--warmup", "0", "--csv"}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(holds(ran.out, ",wrong,"));
  EXPECT_GT(std::count(ran.out.begin(), ran.out.end(), '\n'), 100);
}

// BEN-09: rank 1 holds back 10 ms before each operation; what is reported is the slowest rank.
TEST(BenchRanks, Ben09TheSlowestRankIsReported) {
  const Ran ran = run(ranks(4, {"allreduce", "--sizes", "8", "--iters", "5", "--batch", "1",
                                "--delay", "1:10ms", "--json"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GE(Json::parse(ran.out)["rows"][0]["min_us"].get<double>(), 10'000);
}

TEST(BenchRanks, Rank0AloneSpeaks) {
  const Ran ran = run(ranks(3, {"alreduce"}));
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.err.starts_with("hcc-bench: ")) << ran.err;
  EXPECT_FALSE(holds(ran.err, "\nhcc-bench: ")) << ran.err;
  const Ran rows = run(ranks(3, with({"allreduce", "--sizes", "8", "--ndjson"}, kQuick)));
  EXPECT_EQ(lines_of(rows.out).size(), 3u) << rows.out << rows.err;
}

TEST(BenchRanks, TheLogTellsEachPlanAndWhatItShouldTake) {
  Command command = ranks(2, with({"allreduce", "--sizes", "64K"}, kQuick));
  command.environment.emplace_back("HCOMM_LOG=debug");
  const Ran ran = run(command);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const size_t line = ran.err.find("all_reduce float32 64KiB, 2 ranks: ");
  ASSERT_NE(line, std::string::npos) << ran.err;
  EXPECT_LT(ran.err.find("; predicted ", line), ran.err.find(" us (least predicted time", line));
}

TEST(BenchRanks, AnOutputThatCannotBeMadeIsRank0sFault) {
  const Ran ran = run(ranks(3, with({"allreduce", "-o", "/nonexistent/x"}, kQuick)));
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_TRUE(holds(ran.err, "rank 0 failed first")) << ran.err;
}

TEST(BenchRanks, InterruptedDocumentsAreValid) {
  for (const char* format : {"--ndjson", "--json"}) {
    Command command = ranks(2, {"allreduce", "--sizes", "8,16,32,64,128", "--min-time", "100s",
                                "--max-time", "100s", "--max-noise", "0", format});
    command.signal = SIGINT;
    command.signal_after = "\"schema\"";
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 130) << ran.err;
    if (std::string(format) == "--json") {
      EXPECT_EQ(Json::parse(ran.out)["end"]["complete"], false) << ran.out;
    } else {
      EXPECT_EQ(lines_of(ran.out).back()["complete"], false) << ran.out;
    }
  }
}

TEST(BenchRanks, AHangIsToldAndIsExit4) {
  const Ran ran = run(ranks(
      2, {"allreduce", "--sizes", "8", "--delay", "1:1000s", "--hang-timeout", "1s", "--json"}));
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_TRUE(holds(ran.err, "no progress")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "rank 1")) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["end"]["reason"], "hang") << ran.out;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take more
TEST(BenchRanks, ACommunicatorOfEightTakesUnder16MiBARank) {
  const Ran ran = run(ranks(8, with({"allreduce", "--sizes", "8", "--json"}, kQuick)));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_LT(Json::parse(ran.out)["system"]["memory_mib_per_rank"].get<double>(), 16);
}
#endif

TEST(BenchRanks, EveryTypeAndOperator) {
  const Ran ran =
      run(ranks(3, {"allreduce,reducescatter", "--sizes", "1000", "--dtype", "all", "--redop",
                    "all", "--iters", "1", "--batch", "1", "--warmup", "0", "--csv"}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  // 12 types with 6 operators, and 3 of bits for the 6 integers; twice; and the title.
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 2 * (12 * 6 + 6 * 3) + 1);
}

TEST(BenchRanks, StartupAndCheckAll) {
  const Ran ran = run(ranks(2, {"startup,allreduce,gather", "--sizes", "1K", "--check", "all",
                                "--iters", "5", "--in-place", "both", "--ndjson"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::vector<Json> lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 2u + 4 + 4);
  EXPECT_EQ(lines[1]["operation"], "startup.init");
}

}  // namespace
}  // namespace hcomm::test
