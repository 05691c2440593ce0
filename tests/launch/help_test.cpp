// SPDX-License-Identifier: Apache-2.0
// --help, and that the man page says the same.
#include "cli/help.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "hcc-launch/help.h"
#include "hcc-launch/options.h"
#include "launch/launch_run.h"

namespace hcomm::launch {
namespace {

// The text of a roff page on one line: requests and font changes gone, escapes undone.
std::string plain(const std::string& roff) {
  std::string text;
  bool line_start = true;
  for (size_t i = 0; i < roff.size(); i++) {
    if (line_start && roff[i] == '.') {
      i = roff.find_first_of(" \n", i);
      if (roff[i] == '\n') continue;
    }
    line_start = roff[i] == '\n';
    if (roff[i] == '\\' && i + 1 < roff.size()) {
      const char next = roff[++i];
      if (next == 'f')
        i++;
      else if (next == '-' || next == 'e')
        text += next == '-' ? '-' : '\\';
      else if (next == '(')
        text += roff.compare(i + 1, 2, "aq") == 0 ? '\'' : '?', i += 2;
      continue;
    }
    const bool blank = roff[i] == '\n' || roff[i] == ' ';
    if (!blank || (!text.empty() && text.back() != ' ')) text += blank ? ' ' : roff[i];
  }
  return text;
}

std::string one_line(std::string_view paragraph) {
  std::string text(paragraph);
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

TEST(LaunchHelp, TheManPageHasEveryOptionAndTopic) {
  const std::string roff = launch_test::read_file(HCC_LAUNCH_MAN);
  const std::string man = plain(roff);
  ASSERT_FALSE(man.empty());
  Options options;
  CLI::App parser;
  describe(parser, options);
  int count = 0;
  for (const cli::HelpOption& option : cli::options_of(parser)) {
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + name;
    if (!option.value.empty()) names += " " + option.value;
    EXPECT_NE(man.find(names + " " + option.doc), std::string::npos) << names << " " << option.doc;
    count++;
  }
  EXPECT_EQ(launch_test::count_of(roff, ".TP\n"), count) << "an option that the program lacks";
  for (const Topic& topic : topics())
    for (std::string_view rest = topic.text; !rest.empty();) {
      const size_t end = std::min(rest.find("\n\n"), rest.size());
      EXPECT_NE(man.find(one_line(rest.substr(0, end))), std::string::npos) << rest.substr(0, end);
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
}

TEST(LaunchHelp, GoesToStandardOutput) {
  for (const std::string option : {"--help", "-h"}) {
    const auto result = launch_test::launch({option});
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out.find("--keep-going"), std::string::npos);
  }
  EXPECT_EQ(launch_test::launch({"-n", "2", "--help"}).code, 0);
  EXPECT_NE(launch_test::launch({"--version"}).out.find("hcc-launch "), std::string::npos);
}

TEST(LaunchHelp, Topics) {
  for (const Topic& topic : topics()) {
    const auto result = launch_test::launch({"--help", std::string(topic.name)});
    EXPECT_EQ(result.code, 0);
    EXPECT_TRUE(result.out.starts_with(topic.title)) << result.out;
  }
  const auto result = launch_test::launch({"--help", "bnd"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("did you mean bind?"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace hcomm::launch
