// SPDX-License-Identifier: Apache-2.0
// hcc as a process: the family's conventions, and each of its commands.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/config.h"
#include "cli/json.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

const std::string kHcc = HCC;

Ran hcc(std::vector<std::string> words, std::vector<std::string> environment = {}) {
  words.insert(words.begin(), kHcc);
  return run(Command{.words = std::move(words), .environment = std::move(environment)});
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Hcc, AloneIsAGuideOfOneScreen) {
  const Ran ran = hcc({});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(holds(ran.out, "hcc-launch -n 8 hcc-bench allreduce"));
  EXPECT_LE(std::count(ran.out.begin(), ran.out.end(), '\n'), 40);
  EXPECT_EQ(ran.err, "");
}

TEST(Hcc, HelpAndVersionGoToStandardOutput) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"-h"},
                                                {"--version"},
                                                {"plan", "--help"},
                                                {"env", "-h"},
                                                {"tune", "--help"},
                                                {"version", "--help"},
                                                {"completion", "--help"}}) {
    const Ran ran = hcc(words);
    EXPECT_EQ(ran.code, 0) << words.front();
    EXPECT_FALSE(ran.out.empty());
    EXPECT_EQ(ran.err, "");
  }
}

TEST(Hcc, WrongOptionsAreToldOnStandardError) {
  Ran ran = hcc({"plan", "allreduce", "--rank", "4"});
  EXPECT_EQ(ran.code, 2);
  ran = hcc({"plan", "allreduce", "--rnks", "4"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(holds(ran.err, "did you mean --ranks?")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "Try 'hcc plan --help'")) << ran.err;
  ran = hcc({"pln"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(holds(ran.err, "did you mean plan?")) << ran.err;
  EXPECT_EQ(hcc({"--bogus"}).code, 2);
  EXPECT_EQ(hcc({"completion", "tcsh"}).code, 2);
}

TEST(Hcc, HelpIntoHeadSaysNothingElse) {
  const Ran ran = shell("set -o pipefail; \"$1\" --help | head -1", {kHcc});
  EXPECT_EQ(ran.err, "");
  EXPECT_TRUE(ran.out.starts_with("usage: hcc"));
}

TEST(Hcc, NoEscapesInAPipe) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"env"},
                                                {"version", "-v"},
                                                {"plan", "allreduce", "--ranks", "4"}}) {
    EXPECT_FALSE(holds(hcc(words, {"NO_COLOR=1"}).out, "\x1b"));
    EXPECT_FALSE(holds(hcc(words, {"NO_COLOR", "TERM=xterm"}).out, "\x1b"));
  }
}

TEST(HccVersion, TextAndJson) {
  const Ran text = hcc({"version", "-v"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(holds(text.out, "libhcomm-core"));
  EXPECT_TRUE(holds(text.out, "kernels"));
  EXPECT_TRUE(holds(text.out, "shm"));
  const cli::Json json = cli::Json::parse(hcc({"version", "--json"}).out);
  EXPECT_EQ(json["schema"], "hcc-version");
  EXPECT_EQ(json["library"], json["header"]);
}

TEST(HccEnv, ShowsEverySettingAndWhereItComesFrom) {
  const Ran ran = hcc({"env", "--json"}, {"HCOMM_TIMEOUT=5s"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const cli::Json json = cli::Json::parse(ran.out);
  EXPECT_EQ(json["settings"].size(), settings().size());
  for (const cli::Json& each : json["settings"])
    if (each["name"] == "HCOMM_TIMEOUT") {
      EXPECT_EQ(each["value"], "5s");
      EXPECT_EQ(each["from"], "environment");
    }
  const Ran changed = hcc({"env", "timeout", "--changed"}, {"HCOMM_TIMEOUT=5s"});
  EXPECT_TRUE(holds(changed.out, "HCOMM_TIMEOUT"));
  EXPECT_FALSE(holds(changed.out, "HCOMM_INIT_TIMEOUT"));
}

TEST(HccEnv, FaultsUnknownNamesAndSecrets) {
  Ran ran = hcc({"env"}, {"HCOMM_TIMEOUT=abc"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "HCOMM_TIMEOUT")) << ran.err;
  ran = hcc({"env"}, {"HCOMM_TIMOUT=1s"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "did you mean HCOMM_TIMEOUT?")) << ran.err;
  ran = hcc({"env"}, {"HCOMM_DEBUG=1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "HCOMM_DEBUG is not in this version")) << ran.err;
  ran = hcc({"env", "--json"}, {"HCOMM_SECRET=c0ffee", "HCOMM_NAME=a\"b\x1b\n\xff"});
  EXPECT_FALSE(holds(ran.out, "c0ffee"));
  EXPECT_TRUE(cli::Json::accept(ran.out));
  EXPECT_FALSE(holds(hcc({"env"}, {"HCOMM_NAME=\x1b[31m"}).out, "\x1b"));
}

TEST(HccPlan, NamesTheChoiceTheCandidatesAndTheRule) {
  const Ran ran = hcc({"plan", "allreduce", "--ranks", "8", "--size", "1M", "--cost"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "ring")) << ran.out;
  const cli::Json json =
      cli::Json::parse(hcc({"plan", "all_reduce", "--ranks", "8", "--json"}).out);
  EXPECT_EQ(json["collective"], "all_reduce");
  EXPECT_GE(json["candidates"].size(), 2u);
  const Ran forced = hcc({"plan", "allreduce", "--ranks", "8", "--algo", "ring", "--json"});
  EXPECT_EQ(cli::Json::parse(forced.out)["chosen"]["algorithm"], "ring");
}

TEST(HccPlan, ProvesPrintsAndDraws) {
  const Ran check = hcc({"plan", "allreduce", "--ranks", "24", "--algo", "ring", "--check"});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(holds(check.out, "check:")) << check.out;
  EXPECT_TRUE(holds(hcc({"plan", "broadcast", "--ranks", "4", "--dump"}).out, "send"));
  EXPECT_TRUE(hcc({"plan", "broadcast", "--ranks", "4", "--dot"}).out.starts_with("digraph"));
}

// What cannot be shown together is refused, never left out.
TEST(HccPlan, OptionsThatDoNotGoTogether) {
  const std::vector<std::string> plan = {"plan", "allreduce", "--ranks", "4"};
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--json", "--dump"},
                                               {"--json", "--cost"},
                                               {"--dot", "--json"},
                                               {"--dot", "--check"},
                                               {"--cost", "--dot"},
                                               {"--rank", "1"}}) {
    std::vector<std::string> words = plan;
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = hcc(words);
    EXPECT_EQ(ran.code, 2) << more.front() << " " << more.back();
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(holds(ran.err, more.front())) << ran.err;
  }
  const Ran both = hcc({"plan", "allreduce", "--ranks", "4", "--json", "--check"});
  EXPECT_EQ(both.code, 0);
  EXPECT_TRUE(cli::Json::accept(both.out));
  EXPECT_TRUE(holds(both.err, "check: ")) << both.err;
}

TEST(HccPlan, RefusesWhatCannotBe) {
  EXPECT_EQ(hcc({"plan", "allreduce"}).code, 2);
  EXPECT_EQ(hcc({"plan", "allreduce", "--ranks", "0"}).code, 2);
  EXPECT_EQ(hcc({"plan", "broadcast", "--ranks", "2", "--root", "2"}).code, 2);
  EXPECT_NE(hcc({"plan", "allreduce", "--ranks", "4", "--algo", "rong"}).code, 0);
  const Ran ran = hcc({"plan", "alreduce", "--ranks", "4"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(holds(ran.err, "did you mean all_reduce?")) << ran.err;
}

TEST(HccCompletion, BashOffersWhatHelpShows) {
  const Ran ran = shell(
      "source <(\"$1\" completion bash) || exit 9\n"
      "complete -p hcc hcc-bench hcc-launch >/dev/null || exit 8\n"
      "COMP_WORDS=(hcc pl) COMP_CWORD=1; _hcc; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(hcc plan --ra) COMP_CWORD=2; _hcc; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(hcc-bench allreduce --check '') COMP_CWORD=3; _hcc_bench; "
      "echo \"${COMPREPLY[@]}\"\n",
      {kHcc});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "plan\n--ranks --rank\nfirst all off\n");
}

TEST(HccCompletion, EveryShellNamesEveryTool) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Ran ran = hcc({"completion", shell});
    EXPECT_EQ(ran.code, 0);
    for (const char* part : {"hcc-bench", "hcc-launch", "redop", "deterministic", "sections"})
      EXPECT_TRUE(holds(ran.out, part)) << shell << " " << part;
  }
}

}  // namespace
}  // namespace hcomm::test
