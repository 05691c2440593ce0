// SPDX-License-Identifier: Apache-2.0
// hcc tune: the rules that follow from what was measured, and the program on a small grid.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "cli/run_program.h"
#include "cli/tune/fragment.h"
#include "cli/tune/output.h"
#include "cli/tune/session.h"
#include "policy/policy.h"

namespace hcomm::tune {
namespace {

namespace fs = std::filesystem;
using cli::Json;
using test::Command;
using test::Ran;
using Words = std::vector<std::string>;

Cell cell(size_t bytes, std::string actions, double ratio = 1.2) {
  return {"all_reduce", "shm", 4, bytes, "tree shm", std::move(actions), ratio};
}

Words texts(std::span<const Cell> cells) {
  Words list;
  for (const Rule& rule : rules_of(cells)) list.push_back(rule.text());
  return list;
}

TEST(TuneRules, NeighboursWithOneWinnerAreOneRule) {
  const Cell cells[] = {cell(1024, "algorithm=ring"), cell(4096, "algorithm=ring"),
                        cell(16384, "algorithm=direct"), cell(65536, "")};
  EXPECT_EQ(texts(cells),
            (Words{"collective=all_reduce, ranks=4, link=shm, size>=1KiB, size<16KiB -> "
                   "algorithm=ring",
                   "collective=all_reduce, ranks=4, link=shm, size>=16KiB, size<64KiB -> "
                   "algorithm=direct"}));
}

TEST(TuneRules, BeyondTheLastSizeNothingIsSaid) {
  const Cell cells[] = {cell(1000, "algorithm=ring"), cell(4096, "algorithm=ring")};
  EXPECT_EQ(texts(cells), Words{"collective=all_reduce, ranks=4, link=shm, size>=1000B, "
                                "size<=4KiB -> algorithm=ring"});
}

TEST(TuneRules, WhereTheChoiceStandsThereIsNone) {
  const Cell cells[] = {cell(1024, "algorithm=ring"), cell(4096, ""),
                        cell(16384, "algorithm=ring")};
  EXPECT_EQ(texts(cells).size(), 2u);
  const Cell none[] = {cell(1024, ""), cell(4096, "")};
  EXPECT_TRUE(texts(none).empty());
  EXPECT_TRUE(texts({}).empty());
}

TEST(TuneRules, OtherRanksTransportsAndCollectivesAreOthers) {
  std::vector<Cell> cells;
  for (const uint32_t ranks : {8, 2})
    for (const char* transport : {"tcp", "shm"})
      for (const char* collective : {"all_reduce", "broadcast"})
        for (const size_t bytes : {4096, 1024}) {
          cells.push_back(cell(bytes, "algorithm=ring"));
          cells.back().ranks = ranks;
          cells.back().transport = transport;
          cells.back().collective = collective;
        }
  EXPECT_EQ(texts(cells).size(), 8u);
}

TEST(TuneRules, WhatHasNoSizeIsRuledWithoutOne) {
  Cell barrier = cell(0, "algorithm=tree");
  barrier.collective = "barrier";
  EXPECT_EQ(texts(std::span(&barrier, 1)),
            Words{"collective=barrier, ranks=4, link=shm -> algorithm=tree"});
}

Measured some() {
  Measured measured;
  measured.links = {{"shm", 0.25, 1e-4}};
  measured.work = {5e-5, 8e-5};
  measured.cells = {cell(1024, "algorithm=ring, tile=whole", 1.1),
                    cell(4 << 20, "algorithm=ring, tile=512KiB, window=2", 1.3),
                    cell(16 << 20, "algorithm=ring, tile=512KiB, window=2", 1.5)};
  return measured;
}

// The library takes it, and the plan is that of the rule.
TEST(TuneFragment, IsPolicyThatIsFollowed) {
  const std::string text = fragment(some(), {"hcc", "a\nhost", "now"});
  policy::Inputs inputs{.machine = policy::default_machine(4, 4, 4), .link = "shm"};
  inputs.rules = policy::parse_rules(text, "tuned.conf");
  ASSERT_EQ(inputs.rules.rules.size(), 2u) << text;
  policy::Request request;
  request.shape.collective = schedule::Collective::all_reduce;
  request.shape.ranks = 4;
  for (const auto& [bytes, plan] : {std::pair{2048u, "ring"},
                                    {4u << 20, "ring tile=512KiB window=2"},
                                    {12u << 20, "ring tile=512KiB window=2"}}) {
    request.block_bytes = bytes;
    const policy::Plan chosen = policy::choose(inputs, request);
    EXPECT_EQ(policy::text(chosen.chosen), plan) << bytes;
    EXPECT_TRUE(chosen.reason.starts_with("tuned.conf:")) << chosen.reason;
  }
  request.block_bytes = 17 << 20;
  EXPECT_EQ(policy::choose(inputs, request).reason, "least predicted time");
}

TEST(TuneFragment, TellsOfTheMachineAndOfWhatStands) {
  Measured measured = some();
  measured.cells.push_back(cell(64 << 20, ""));
  measured.left_out = "no time";
  const std::string text = fragment(measured, {"hcc", "host", "now"});
  for (const char* part :
       {"# link shm ", "# reduce float32 ", "# Not complete: no time.\n",
        "# all_reduce, 4 ranks, shm: the model's choice stands in 1 of 4 sizes\n",
        "# all_reduce, 4 ranks, shm, 4MiB to 16MiB: the model's choice (tree shm) takes 1.30 to "
        "1.50 times as long\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  const Json json = document_json(measured, {"hcc", "host", "now"});
  EXPECT_EQ(json["schema"], "hcc-tune");
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["cells"].size(), 4u);
  EXPECT_EQ(json["rules"].size(), 2u);
}

const char* const kCell =
    R"({"operation":"allreduce","ranks":2,"bytes":8,"best":"ring","ratio":1.5,"verdict":"VERDICT",)"
    R"("plans":[{"forced":null,"actions":null,"plan":"tree shm","wrong_elements":0},)"
    R"({"forced":"ring","actions":"algorithm=ring","plan":"ring shm","wrong_elements":WRONG}]})";

std::string line(const std::string& verdict, const std::string& wrong = "0") {
  std::string text = kCell;
  text.replace(text.find("VERDICT"), 7, verdict);
  return text.replace(text.find("WRONG"), 5, wrong) + "\n";
}

TEST(TuneCells, AreReadFromBetweenOtherLines) {
  const std::vector<Cell> cells = parse_cells(
      "a warning\n{\"schema\":\"x\"}\n" + line("worse") + "{broken\n" + line("noise"), "tcp");
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].collective, "all_reduce");
  EXPECT_EQ(cells[0].transport, "tcp");
  EXPECT_EQ(cells[0].actions, "algorithm=ring");
  EXPECT_EQ(cells[0].ratio, 1.5);
  EXPECT_EQ(cells[1].actions, "");
}

TEST(TuneCells, WrongResultsAreNoResult) {
  EXPECT_THROW(parse_cells(line("worse", "3"), "shm"), Error);
}

TEST(TuneCells, ARuleNeedsTwoRuns) {
  const Cell second[] = {cell(1024, ""), cell(4096, "algorithm=direct", 1.4)};
  const std::vector<Cell> cells =
      confirmed({cell(64, ""), cell(1024, "algorithm=ring"), cell(4096, "algorithm=ring"),
                 cell(16384, "algorithm=ring")},
                second);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0].actions, "");
  EXPECT_EQ(cells[1].actions, "") << "it was by chance";
  EXPECT_EQ(cells[2].actions, "algorithm=direct");
  EXPECT_EQ(cells[2].ratio, 1.4);
  EXPECT_EQ(cells[3].actions, "") << "there was no time to measure it again";
}

TEST(TuneWanted, TimeIsSharedByAllPlans) {
  Wanted wanted{{2, 4}, {"allreduce", "barrier"}, {"shm", "tcp"}, {8, 1 << 20}, 0};
  EXPECT_EQ(jobs_of(wanted).size(), 8u);
  const auto at = [&](int64_t s) {
    wanted.time_ns = s * 1'000'000'000;
    return time_of_plan_ns(wanted);
  };
  EXPECT_EQ(at(1), 2'000'000);
  EXPECT_LT(at(40), at(50));
  EXPECT_EQ(at(100'000), 200'000'000);
}

class TuneFile : public testing::Test {
 protected:
  std::string path(const char* name) const { return (folder_ / name).string(); }
  TuneFile() {
    std::string name = (fs::temp_directory_path() / "hcomm-tune-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~TuneFile() override { fs::remove_all(folder_); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static std::string text_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // On the smallest grid.
  static Ran tune(Words more, Words environment = {}) {
    Words words = {HCC,       "tune", "--ranks",     "2",   "--collectives", "broadcast,barrier",
                   "--sizes", "1K",   "--transport", "shm", "--time",        "1s"};
    words.insert(words.end(), more.begin(), more.end());
    Command command{.words = std::move(words)};
    command.environment = {"HCOMM_RANK", "HCOMM_SIZE", "HCOMM_RECORDER_FD"};
    command.environment.insert(command.environment.end(), environment.begin(), environment.end());
    command.limit_s = 100;
    return test::run(command);
  }

  fs::path folder_;
};

TEST_F(TuneFile, IsWholeOrNotThere) {
  const Output output{path("a"), Existing::keep};
  output.check();
  output.write("one");
  EXPECT_EQ(text_of(path("a")), "one");
  EXPECT_THROW(output.check(), Error);
  EXPECT_THROW(output.write("two"), Error);
  EXPECT_EQ(text_of(path("a")), "one");
  const Output over{path("a"), Existing::overwrite};
  over.check();
  over.write("three");
  EXPECT_EQ(text_of(path("a")), "three");
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW((Output{path("none/a")}.check()), Error);
  EXPECT_THROW((Output{"/dev/null", Existing::overwrite}.check()), Error);
  EXPECT_THROW(Output{""}.check(), Error);
  ASSERT_EQ(symlink(path("nothing").c_str(), path("dangling").c_str()), 0);
  EXPECT_THROW(Output{path("dangling")}.check(), Error);
  ASSERT_EQ(symlink(path("a").c_str(), path("link").c_str()), 0);
  Output{path("link"), Existing::overwrite}.write("through");
  EXPECT_EQ(text_of(path("a")), "through");
}

TEST_F(TuneFile, IsWrittenAndObeyed) {
  const Ran ran = tune({"-o", path("tuned.conf")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("link shm"), std::string::npos) << ran.out;
  const std::string text = text_of(path("tuned.conf"));
  EXPECT_NE(text.find("\n[tuning]\n"), std::string::npos) << text;
  // Whether there is a rule is the machine's affair: one more, and a following run obeys it.
  std::ofstream(path("tuned.conf"), std::ios::app)
      << "collective=broadcast, ranks=2, link=shm, size>=1KiB, size<=1KiB -> "
         "algorithm=scatter_allgather, tile=whole, priority=1\n";
  const Ran bench = test::run(
      Command{.words = {HCC_LAUNCH, "-n", "2", "--label", "none", HCC_BENCH, "broadcast", "--sizes",
                        "1K,2K", "--iters", "1", "--csv"},
              .environment = {"HCOMM_POLICY=" + path("tuned.conf"), "HCOMM_TRANSPORT=shm"}});
  EXPECT_EQ(bench.code, 0) << bench.err;
  const size_t first = bench.out.find(",1024,"), second = bench.out.find(",2048,");
  EXPECT_NE(bench.out.substr(first, second - first).find("scatter_allgather"), std::string::npos)
      << bench.out;
  EXPECT_EQ(tune({"-o", path("tuned.conf")}).code, 2) << "it is there already";
  EXPECT_EQ(tune({"-o", path("tuned.conf"), "--force", "-q"}).code, 0);
}

TEST_F(TuneFile, JsonGoesToStandardOutput) {
  const Ran ran = tune({"--json", "-q"}, {"HCOMM_ALGO=chain"});  // does not count
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const Json json = Json::parse(ran.out);
  EXPECT_TRUE(json["cells"].size() == 2 || !json["complete"]) << ran.out;
  EXPECT_GT(json["links"][0]["latency_us"], 0.0);
  EXPECT_GT(json["reduce_us_per_byte"], 0.0);
}

TEST_F(TuneFile, DryRunsRunNothing) {
  const Ran ran = tune({"--dry-run", "-o", path("a")});
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("HCOMM_TRANSPORT=shm "), std::string::npos) << ran.out;
  EXPECT_EQ(files(), 0u);
}

TEST_F(TuneFile, UsageErrors) {
  for (const Words& words : std::vector<Words>{{"--ranks", "1"},
                                               {"--ranks", ""},
                                               {"--ranks", "2,x"},
                                               {"--collectives", "sendrecv"},
                                               {"--collectives", "allgatherv"},
                                               {"--collectives", "alreduce"},
                                               {"--sizes", "4:1"},
                                               {"--transport", "ib"},
                                               {"--time", "0"}}) {
    const Ran ran = tune(words);
    EXPECT_EQ(ran.code, 2) << words[0] << words[1] << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(tune({"-o", path("none/a")}).code, 3);
}

TEST_F(TuneFile, HccBenchMustBeBesideIt) {
  fs::copy_file(HCC, path("hcc"));
  const Ran ran = test::run(
      Command{.words = {path("hcc"), "tune"}, .environment = {"LD_LIBRARY_PATH=" LIBRARY_FOLDER}});
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_NE(ran.err.find("hcc-launch is not there"), std::string::npos) << ran.err;
}

// Ctrl-C while ranks are running: all that carries the mark in its environment is gone.
TEST_F(TuneFile, InterruptedLeavesNeitherFileNorProcess) {
  const Ran ran = test::shell(R"(
    marked() { grep -lz "^HCOMM_NAME=$2$" /proc/[0-9]*/environ 2>/dev/null | wc -l; }
    HCOMM_NAME=$2 "$1" tune --ranks 2 --time 60s -o "$2" & hcc=$!
    for i in $(seq 600); do [ $(marked "$@") -ge 4 ] && break; sleep 0.05; done
    kill -INT $hcc
    wait $hcc; code=$?
    echo "$(marked "$@") left"
    exit $code)",
                              {HCC, path("a")});
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(ran.out, "0 left\n");
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace hcomm::tune
