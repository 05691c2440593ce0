// SPDX-License-Identifier: Apache-2.0
// README.md, CONTRIBUTING.md and libcore/README.md against the tree: the commands run (with less
// data), the example is the one that is built, links and file names lead somewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "support/shell.h"

namespace hcomm {
namespace {

namespace fs = std::filesystem;
using test::file_text;
using test::Ran;
using test::shell;

const fs::path kSource = SOURCE_DIRECTORY, kBuild = BUILD_DIRECTORY;

// The text of each block between ```language and ```.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> found;
  const std::string open = "```" + language + "\n", close = "```\n";
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    const size_t begin = at + open.size();
    at = page.find(close, begin);
    found.push_back(page.substr(begin, at - begin));
  }
  return found;
}

std::vector<std::string> commands(const std::string& page) {
  std::vector<std::string> found;
  for (const std::string& block : blocks(page, "sh")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find("  #"));
      if (!line.empty()) found.push_back(line);
    }
  }
  return found;
}

// How a test runs a command: in this build, with little data; the scripts, which would build the
// tree within its own tests, are asked for help (tests/etc runs all of them).
std::string as_test(std::string command, const std::string& prefix) {
  const std::pair<std::string, std::string> changes[] = {
      {"etc/quickstart.sh", "etc/quickstart.sh --help"},
      {"etc/test.sh", "etc/test.sh --help"},
      {"etc/compare-peers.sh", "etc/compare-peers.sh --help"},
      {"$PWD/build/release", kBuild.string()},
      {"build/release", kBuild.string()},
      {"$HOME/hcomm", prefix},
      {"bench limits", "bench limits --min-time 1ms"},
      {"interference --load 16M", "interference --load 64K --every 0 --samples 100"},
      {"overlap --sizes 16M", "overlap --sizes 64K --rounds 2"},
      {"1K:1G", "1K:1M:x32"},
      {"8:1M", "1K"},
      {"--time 5m > tuned.conf",
       "--time 1s --collectives barrier --transport shm > " + prefix + ".conf"},
      {"--epochs 3", "--epochs 1 --limit 1000"},
  };
  for (const auto& [from, to] : changes)
    if (const size_t at = command.find(from); at != std::string::npos)
      command.replace(at, from.size(), to);
  return command;
}

TEST(Readme, CommandsRun) {
  const test::TemporaryFolder folder;
  size_t count = 0;
  for (const char* page : {"README.md", "CONTRIBUTING.md"}) {
    for (const std::string& command : commands(file_text(kSource / page))) {
      count++;
      const Ran ran =
          shell(fmt::format("cd '{}' && PATH='{}/bin':$PATH && {}", kSource.string(),
                            kBuild.string(), as_test(command, (folder.path() / "hcomm").string())));
      EXPECT_EQ(ran.code, 0) << page << ": " << command << "\n" << ran.output;
    }
  }
  EXPECT_GE(count, 8U);
  EXPECT_TRUE(fs::exists(folder.path() / "hcomm/include/hcomm/hcomm.h"));
}

TEST(Readme, ExampleIsTheOneThatIsBuilt) {
  const std::vector<std::string> c = blocks(file_text(kSource / "README.md"), "c");
  ASSERT_EQ(c.size(), 1U);
  const std::string file = file_text(kSource / "examples/allreduce/allreduce.c");
  EXPECT_NE(file.find(c[0]), std::string::npos) << c[0];
}

TEST(Readme, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#:]+)\))");
  for (const char* page : {"README.md", "CONTRIBUTING.md", "libcore/README.md"}) {
    const std::string text = file_text(kSource / page);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), link);
         it != std::sregex_iterator(); ++it)
      EXPECT_TRUE(fs::exists((kSource / page).parent_path() / (*it)[1].str()))
          << page << ": " << (*it)[1];
  }
}

TEST(Readme, ArchitecturePageNamesFilesThatExist) {
  const std::regex name(R"(`([a-z_/]+\.(h|hpp|cpp|def|txt))`)");
  const std::string text = file_text(kSource / "libcore/README.md");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator();
       ++it) {
    const std::string file = (*it)[1];
    if (file.find("/foo.") != std::string::npos || file.find('/') == std::string::npos) continue;
    EXPECT_TRUE(fs::exists(kSource / "libcore" / file) || fs::exists(kSource / file)) << file;
  }
}

TEST(Readme, ArchitecturePageNamesTestsThatAreBuilt) {
  const std::regex name(R"(`(?:tests/)?(?:[a-z]+/)?([a-z_]+_test)`)");
  const std::string text = file_text(kSource / "libcore/README.md");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator();
       ++it)
    EXPECT_TRUE(fs::exists(kBuild / "bin" / (*it)[1].str())) << (*it)[1];
}

}  // namespace
}  // namespace hcomm
