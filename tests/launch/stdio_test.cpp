// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of ranks.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/bytes.h"
#include "launch/launch_run.h"

namespace hcomm::launch_test {
namespace {

std::string pattern_bytes(size_t count) {
  std::string bytes(count, '\0');
  uint64_t state = 0x9e3779b97f4a7c15u + count;
  for (char& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

std::string expected_hash(const std::string& bytes) {
  return fmt::format("{} {}\n", bytes.size(), hash_bytes(bytes));
}

UniqueFd file_with(const std::string& bytes) {
  const std::string path = temporary_folder() + "/input";
  std::ofstream(path, std::ios::binary) << bytes;
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// As a pipe whose writer is another thread.
struct Feed {
  UniqueFd reading;
  std::thread writer;
  explicit Feed(const std::string& bytes) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reading.reset(ends[0]);
    writer = std::thread([&bytes, fd = ends[1]] {
      std::string_view rest = bytes;
      while (!rest.empty()) {
        const ssize_t written = write(fd, rest.data(), rest.size());
        if (written <= 0) break;
        rest.remove_prefix(static_cast<size_t>(written));
      }
      close(fd);
    });
  }
  ~Feed() {
    reading.reset();
    writer.join();
  }
};

TEST(LaunchStdio, STD_01_StdinIsExactAndEnds) {
  std::signal(SIGPIPE, SIG_IGN);
  for (const size_t count : {0ul, 1ul, 65535ul, 65536ul, 65537ul, 10ul << 20}) {
    const std::string bytes = pattern_bytes(count);
    const UniqueFd file = file_with(bytes);
    Launch from_file({"-n", "4", "sh", "-c", "[ $HCOMM_RANK != 0 ] || exec \"$0\" hash", probe()});
    EXPECT_EQ(from_file.input(file.get()).finish().out, expected_hash(bytes)) << count;

    Feed feed(bytes);
    Launch to_all({"-n", "4", "--stdin", "all", probe(), "hash"});
    const Result result = to_all.input(feed.reading.get()).finish();
    const std::string two = expected_hash(bytes) + expected_hash(bytes);
    EXPECT_EQ(result.out, two + two) << count << result.err;
  }
}

TEST(LaunchStdio, STD_01_SlowReadersAndAnotherRank) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string bytes = pattern_bytes(1 << 20);
  Feed slow(bytes);
  Launch all({"-n", "2", "--stdin", "all", probe(), "hash", "slow"});
  EXPECT_EQ(all.input(slow.reading.get()).finish().out,
            expected_hash(bytes) + expected_hash(bytes));
  Feed feed(bytes);
  Launch one({"-n", "2", "--stdin", "1", "sh", "-c", "[ $HCOMM_RANK = 0 ] || exec \"$0\" hash slow",
              probe()});
  EXPECT_EQ(one.input(feed.reading.get()).finish().out, expected_hash(bytes));
}

TEST(LaunchStdio, STD_01_HundredMegabytes) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string bytes = pattern_bytes(100'000'000);
  Feed feed(bytes);
  Launch run({"-n", "1", probe(), "hash"});
  EXPECT_EQ(run.input(feed.reading.get()).finish(60).out, expected_hash(bytes));
}

TEST(LaunchStdio, STD_01_AReaderThatLeavesDoesNotHoldUpTheOthers) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string bytes = pattern_bytes(1 << 20);
  Feed feed(bytes);
  Launch run({"-n", "2", "--stdin", "all", "sh", "-c",
              "[ $HCOMM_RANK = 1 ] && exec head -c 10 >/dev/null; exec \"$0\" hash", probe()});
  const Result result = run.input(feed.reading.get()).finish();
  EXPECT_EQ(result.out, expected_hash(bytes)) << result.err;
}

TEST(LaunchStdio, STD_03_StdinThatNobodyReadsStays) {
  const UniqueFd list = file_with("1\n2\n3\n4\n5\n");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(list.get(), 0);
    execl("/bin/sh", "sh", "-c",
          "n=0; while read l; do \"$0\" -n 2 true || exit 99; n=$((n+1)); done; exit $n",
          HCC_LAUNCH, nullptr);
    _exit(98);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST(LaunchStdio, STD_03_ClosedStdin) {
  for (const std::string to : {"0", "all", "none"}) {
    Launch run({"--stdin", to, "-n", "2", probe(), "hash"});
    const Result result = run.input(-1).finish();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, expected_hash("") + expected_hash(""));
  }
}

TEST(LaunchStdio, STD_05_NoLineIsLostOrMixed) {
  constexpr int kRanks = 8, kLines = 10000;
  const Result result = launch(
      {"-n", std::to_string(kRanks), "--label", "rank", probe(), "lines", std::to_string(kLines)});
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<int> next(kRanks);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    int label = -1, rank = -1, number = -1, end = -1;
    std::sscanf(line.c_str(), "[%d] rank %d line %d%n", &label, &rank, &number, &end);
    ASSERT_EQ(end, static_cast<int>(line.size())) << line;
    ASSERT_EQ(label, rank) << line;
    ASSERT_EQ(number, next[static_cast<size_t>(rank)]++) << line;
  }
  for (const int count : next) EXPECT_EQ(count, kLines);
}

TEST(LaunchStdio, STD_05_ASlowReaderLosesNothing) {
  Launch run({"-n", "4", probe(), "lines", "30000"});
  ASSERT_TRUE(run.wait_for("line 5"));
  pause_ms(300);  // the pipe and the buffers fill up meanwhile
  const Result result = run.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(count_of(result.out, "\n"), 4 * 30000);
}

TEST(LaunchStdio, STD_07_CarriageReturnsAreKeptInFilesAndPipes) {
  std::string expected;
  for (int i = 1; i <= 100; i++) expected += "\r" + std::to_string(i) + "%";
  EXPECT_EQ(launch({"-n", "1", probe(), "progress"}).out, expected + "\n");
  const Result result = launch({"-n", "2", "--label", "rank", probe(), "progress"});
  EXPECT_EQ(count_of(result.out, "%"), 200) << result.out;
  EXPECT_EQ(count_of(result.out, "[0] "), 1);
  EXPECT_EQ(count_of(result.out, "[1] "), 1);
}

TEST(LaunchStdio, STD_07_CarriageReturnsAreKeptInAFile) {
  std::string expected;
  for (int i = 1; i <= 100; i++) expected += "\r" + std::to_string(i) + "%";
  const std::string path = temporary_folder() + "/out";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  for (const std::string ranks : {"1", "2"}) {
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    Launch run({"-n", ranks, "--label", "none", probe(), "progress"});
    EXPECT_EQ(run.output(file.get()).finish().code, 0);
    const std::string seen = read_file(path);
    EXPECT_TRUE(ranks != "1" || seen == expected + "\n") << seen;
    EXPECT_EQ(count_of(seen, "%"), ranks == "1" ? 100 : 200) << seen;
    EXPECT_EQ(seen.find('\x1b'), std::string::npos) << seen;
  }
}

// Output that nobody takes does not hold up the time limit.
TEST(LaunchStdio, AFullTerminalDoesNotBlockTheLauncher) {
  int master = -1, slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const UniqueFd reading(master);
  UniqueFd writing(slave);
  Launch run({"--timeout", "500ms", "yes"});
  ASSERT_TRUE(run.output(writing.get()).wait_for("the time limit of 0.5 s is reached"));
  writing.reset();
  std::thread reader([master] {
    char buffer[65536];
    while (read(master, buffer, sizeof buffer) > 0) {
    }
  });
  EXPECT_EQ(run.finish(10).code, 124);
  reader.join();
}

// What the pipe, the launcher's buffer and the rank's own pipe hold together: the rank is gone, its
// output waits for `less` to be scrolled.
TEST(LaunchStdio, AJobThatIsOverHasNoTimeLimit) {
  constexpr size_t kBytes = (1 << 20) + (128 << 10);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  Launch run(
      {"--timeout", "2s", "--grace", "100ms", "head", "-c", std::to_string(kBytes), "/dev/zero"});
  run.output(writing.get()).start();
  writing.reset();
  const double limit = seconds_now() + 2.2;
  ASSERT_TRUE(wait_until(2, [&] { return run.process("hcc-agent") > 0; }));
  wait_until(10, [&] { return seconds_now() > limit; });  // the limit is what passes here
  char buffer[65536];
  size_t seen = 0;
  for (ssize_t got = 0; (got = read(reading.get(), buffer, sizeof buffer)) > 0;)
    seen += static_cast<size_t>(got);
  const Result result = run.finish(10);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(seen, kBytes);
}

TEST(LaunchStdio, UnfinishedLinesAreShownAndContinued) {
  Launch run({"-n", "2", "--label", "rank", probe(), "pieces", "prompt"});
  const Result result = run.finish();
  // Each rank's line is whole, or broken with a mark where the other one wrote in between.
  std::string rest = result.out;
  for (const std::string rank : {"0", "1"}) {
    EXPECT_EQ(count_of(rest, "[" + rank + "] prompt"), 1) << result.out;
    EXPECT_EQ(
        count_of(rest, "[" + rank + "] prompt end\n") + count_of(rest, "[" + rank + "]+ end\n"), 1)
        << result.out;
  }
}

TEST(LaunchStdio, OneRankPassesThroughUntouched) {
  const std::string bytes = std::string("a\0b\r\nc\xff no newline", 18);
  const std::string path = temporary_folder() + "/bytes";
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(launch({"cat", path}).out, bytes);
}

TEST(LaunchStdio, StreamsStayApart) {
  const Result result = launch({"-n", "1", probe(), "print", "to out\n", "to err\n"});
  EXPECT_EQ(result.out, "to out\n");
  EXPECT_EQ(result.err, "to err\n");
}

TEST(LaunchStdio, LabelsAndTimes) {
  const Result result = launch({"-n", "1", "--label", "host:rank", "--timestamp", "echo", "hello"});
  const std::regex expected(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \[[^:\]]+:0\] hello\n)");
  EXPECT_TRUE(std::regex_match(result.out, expected)) << result.out;
  EXPECT_EQ(launch({"-n", "2", "echo", "same"}).out, "same\nsame\n");
}

TEST(LaunchStdio, OutputFiles) {
  const std::string folder = temporary_folder();
  Result result = launch({"-n", "2", "--output-pattern", folder + "/%R/x.out", "sh", "-c",
                          "echo out$HCOMM_RANK; echo err$HCOMM_RANK >&2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(read_file(folder + "/1/x.out"), "out1\n");
  EXPECT_EQ(read_file(folder + "/1/x.err"), "err1\n");
  result = launch({"-n", "2", "--tee", "--output-dir", folder, "echo", "both"});
  EXPECT_EQ(result.out, "both\nboth\n");
  EXPECT_EQ(launch({"-n", "2", "--output-pattern", folder + "/same", "true"}).code, 2);
  EXPECT_EQ(launch({"-n", "2", "--output-pattern", folder + "/%q", "true"}).code, 2);
  EXPECT_EQ(launch({"--dry-run", "--output-pattern", folder + "/%q", "true"}).code, 2);
  EXPECT_EQ(launch({"--dry-run", "-n", "2", "--output-pattern", folder + "/x", "true"}).code, 2);
}

TEST(LaunchStdio, AReaderThatLeavesEndsTheWriters) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Launch run({"-q", "-n", "2", "yes"});
  run.output(ends[1]);
  run.start();
  close(ends[1]);
  close(ends[0]);
  EXPECT_EQ(run.finish(10).code, 128 + SIGPIPE);
  EXPECT_TRUE(run.nothing_left());
}

}  // namespace
}  // namespace hcomm::launch_test
