// SPDX-License-Identifier: Apache-2.0
// The manual pages say what the tools do: every option of --help is in the page and the other way
// round; hcomm(7) has every setting.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/config.h"
#include "cli/run_program.h"

namespace hcomm::test {
namespace {

std::string page(const std::string& name) {
  std::ifstream file(MAN_FOLDER + ("/" + name));
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return std::regex_replace(text.str(), std::regex(R"(\\-)"), "-");
}

std::set<std::string> found(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::set<std::string> words;
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i)
    words.insert((*i)[1]);
  return words;
}

// Options at the head of an entry: of --help ("  -o, --output FILE"), of a page (.TP, then a line
// of bold names).
std::set<std::string> help_options(const std::vector<std::string>& words) {
  const Ran ran = run(words);
  EXPECT_EQ(ran.code, 0);
  std::set<std::string> options = found(ran.out, R"(\n +(?:-[a-zA-Z], )?(--[a-z][a-z-]*))");
  for (const std::string& name : found(ran.out, R"(\n  (-[a-zA-Z])[, ])")) options.insert(name);
  return options;
}

std::set<std::string> page_options(const std::string& text) {
  std::set<std::string> options;
  for (const std::string& line : found(text, R"(\n\.TP\n(\.B[^\n]*|\\fB[^\n]*))"))
    for (const std::string& name : found(line, R"((--?[a-zA-Z][a-z-]*))")) options.insert(name);
  return options;
}

TEST(Man, HccBenchHasEveryOptionOfEveryCommand) {
  std::set<std::string> all = help_options({HCC_BENCH, "--help"});
  for (const char* command : {"compare", "interference", "limits", "overlap"}) {
    const std::set<std::string> more = help_options({HCC_BENCH, command, "--help"});
    all.insert(more.begin(), more.end());
  }
  EXPECT_EQ(page_options(page("hcc-bench.1")), all);
}

TEST(Man, HccHasEveryOptionOfEveryCommand) {
  std::set<std::string> all = help_options({HCC, "--help"});
  for (const char* command : {"completion", "env", "plan", "tune", "version"}) {
    const std::set<std::string> more = help_options({HCC, command, "--help"});
    all.insert(more.begin(), more.end());
  }
  EXPECT_EQ(page_options(page("hcc.1")), all);
}

TEST(Man, HcommHasEverySetting) {
  std::set<std::string> names;
  for (const Setting& setting : settings()) names.insert(std::string(setting.name));
  EXPECT_EQ(found(page("hcomm.7"), R"(\n\.TP\n\\fB(HCOMM_[A-Z_]+))"), names);
}

TEST(Man, PagesAreWellFormed) {
  if (run({"sh", "-c", "command -v groff"}).code != 0) GTEST_SKIP() << "no groff";
  for (const char* name : {"hcc.1", "hcc-bench.1", "hcc-launch.1", "hcomm.7", "policy.conf.5"}) {
    const Ran ran =
        run({"groff", "-man", "-Tutf8", "-ww", "-z", std::string(MAN_FOLDER) + "/" + name});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, "") << name;
  }
}

}  // namespace
}  // namespace hcomm::test
