// SPDX-License-Identifier: Apache-2.0
// hcc-bench compare as a process: its command line, and small real comparisons with what is
// installed here.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

namespace fs = std::filesystem;
using cli::Json;
using Words = std::vector<std::string>;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "hcc-compare-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

Command command(const Words& words, const std::string& cache) {
  Command command;
  command.words = {HCC_BENCH, "compare"};
  command.words.insert(command.words.end(), words.begin(), words.end());
  command.environment = {"XDG_CACHE_HOME=" + cache, "HCOMM_RANK", "HCOMM_SIZE"};
  command.limit_s = 200;
  return command;
}

const Words kSmall = {"--ranks",     "2",   "--sizes",       "4,64K",
                      "--rounds",    "1",   "--budget",      "2ms",
                      "--transport", "shm", "--collectives", "allreduce,barrier"};

Words small(const Words& more) {
  Words words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Compare, HelpAndUsageErrors) {
  const Ran help = run({HCC_BENCH, "compare", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(holds(help.out, "--peer-prefix")) << help.out;
  EXPECT_TRUE(holds(run({HCC_BENCH, "--help"}).out, "compare"));
  for (const Words& words : std::vector<Words>{{"--peers", "nccl"},
                                               {"--peers", ""},
                                               {"--ranks", "1"},
                                               {"--ranks", "65"},
                                               {"--ranks", "two"},
                                               {"--sizes", "1"},
                                               {"--sizes", "16G"},
                                               {"--transport", "rdma"},
                                               {"--collectives", "gather"},
                                               {"--collectives", "alreduce"},
                                               {"--memory", "gpu"},
                                               {"--rounds", "0"},
                                               {"--budget", "0"},
                                               {"--hang-timeout", "0"},
                                               {"--peer-prefix"},
                                               {"--json", "--csv"},
                                               {"--bogus"},
                                               {"allreduce"}}) {
    Words all = {HCC_BENCH, "compare"};
    all.insert(all.end(), words.begin(), words.end());
    const Ran ran = run(all);
    EXPECT_EQ(ran.code, 2) << words.back() << ran.out << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_TRUE(holds(run({HCC_BENCH, "compare", "--peers", "openmp"}).err, "did you mean openmpi?"));
  EXPECT_TRUE(holds(run({HCC_BENCH, "compare", "--round", "3"}).err, "did you mean --rounds?"));
}

TEST(Compare, IsStartedAlone) {
  const Ran ran = run({HCC_LAUNCH, "-n", "2", "--label", "none", HCC_BENCH, "compare"});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_TRUE(holds(ran.err, "without a launcher")) << ran.err;
}

TEST(Compare, APeerThatWasNamedAndIsNotThereIsExit3) {
  const Folder folder;
  const Ran ran = run(command({"--peers", "none", "--peer-prefix", folder.path}, folder.path));
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(holds(ran.err, "no peer in " + folder.path)) << ran.err;
  EXPECT_EQ(run({HCC_BENCH, "serve", "nobody"}).code, 2);
}

TEST(Compare, HcommAlone) {
  const Folder folder;
  const Ran ran = run(command(small({"--peers", "none", "--json"}), folder.path));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["cells"].size(), 3U);
  for (const Json& cell : json["cells"]) {
    const Json& ours = cell["subjects"][0];
    EXPECT_EQ(ours["subject"], "hcomm");
    ASSERT_EQ(ours["turns"].size(), 1U) << ours;
    EXPECT_EQ(ours["turns"][0]["wrong_elements"], 0);
  }
}

TEST(Compare, EveryOperationWithMemoryOfTheLibrary) {
  const Folder folder;
  const Ran ran = run(command({"--ranks", "3", "--sizes", "4,100K", "--rounds", "1", "--budget",
                               "2ms", "--peers", "none", "--memory", "hcomm", "--csv"},
                              folder.path));
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  // 7 operations of 2 sizes and a barrier, over 2 transports, and the titles.
  EXPECT_GE(std::count(ran.out.begin(), ran.out.end(), '\n'), 31);
}

// With a small budget, and nothing said of the times.
TEST(Compare, WithOpenMpi) {
  if (run({"sh", "-c", "command -v mpicc.openmpi && command -v mpirun.openmpi"}).code != 0)
    GTEST_SKIP() << "no Open MPI: apt install openmpi-bin libopenmpi-dev";
  const Folder folder;
  const std::string file = folder.path + "/out.json", drawing = folder.path + "/out.svg";
  const Ran ran = run(command(small({"--peers", "openmpi", "-o", file, "--plot", drawing}),
                              folder.path + "/cache"));
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(holds(ran.out, "openmpi")) << ran.out;
  const Json json = Json::parse(run({"cat", file}).out);
  ASSERT_EQ(json["cells"].size(), 3U);
  for (const Json& cell : json["cells"]) {
    const Json& peer = cell["subjects"][1];
    EXPECT_TRUE(holds(peer["version"].get<std::string>(), "Open MPI")) << peer;
    EXPECT_TRUE(peer["error"].is_null()) << peer;
    ASSERT_EQ(peer["turns"].size(), 1U) << peer;
    EXPECT_EQ(peer["turns"][0]["wrong_elements"], 0);
  }
  EXPECT_TRUE(holds(run({"cat", drawing}).out, "</svg>"));
  EXPECT_TRUE(fs::exists(folder.path + "/cache/hcomm/peers"));
}

// The rows so far are there, the document is closed, and no rank outlives it.
TEST(Compare, AnInterruptKeepsWhatIsDone) {
  const Folder folder;
  Command interrupted = command({"--ranks", "2", "--sizes", "4:1K", "--rounds", "3", "--budget",
                                 "50ms", "--peers", "none", "--json"},
                                folder.path);
  interrupted.signal = SIGINT;
  interrupted.signal_after = "\"allreduce\"";
  const Ran ran = run(interrupted);
  EXPECT_EQ(ran.code, 130) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["end"]["complete"], false);
  EXPECT_GE(json["cells"].size(), 1U);
}

// Killed without a word to anybody: the ranks leave by themselves.
TEST(Compare, AKillLeavesNoRankBehind) {
  const Folder folder;
  Command killed = command({"--ranks", "2", "--sizes", "4:1K", "--rounds", "3", "--budget", "50ms",
                            "--peers", "none", "--json"},
                           folder.path + "/mark");
  killed.signal = SIGKILL;
  killed.signal_after = "\"allreduce\"";
  EXPECT_EQ(run(killed).code, 128 + SIGKILL);
  // Its ranks have the mark in their environment.
  const std::string look = "grep -l -a '" + folder.path +
                           "/mark' /proc/[0-9]*/environ "
                           "2>/dev/null | grep -v self";
  std::string left = "first";
  for (int i = 0; i < 100 && !left.empty(); i++) {
    left = run(Command{.words = {"sh", "-c", look}}).out;
    if (!left.empty()) usleep(100'000);
  }
  EXPECT_EQ(left, "");
}

}  // namespace
}  // namespace hcomm::test
