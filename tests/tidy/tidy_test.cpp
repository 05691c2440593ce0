// SPDX-License-Identifier: Apache-2.0
// The tree against the rules of the house.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tidy/rules.h"

namespace hcomm::tidy {
namespace {

const Tree& sources() {
  static const Tree tree = read_tree(SOURCE_DIRECTORY);
  return tree;
}

void expect_none(const Strings& faults) {
  EXPECT_TRUE(faults.empty()) << fmt::format("{}", fmt::join(faults, "\n"));
}

TEST(Tidy, ReadsTheTree) {
  EXPECT_GT(sources().size(), 100U);
  EXPECT_TRUE(sources().contains("libcore/base/error.h"));
}
TEST(Tidy, LayersIncludeWhatIsBelow) {
  expect_none(check_layers(sources()));
}
TEST(Tidy, LayersLinkWhatTheTableSays) {
  expect_none(check_layer_links(sources()));
}
TEST(Tidy, EveryFolderIsInTheTable) {
  const Layers layers = read_layers(sources());
  for (const auto& [path, text] : sources()) {
    const Strings parts = split(path, '/');
    if (parts.size() == 3 && parts[0] == "libcore" && parts[2] == "CMakeLists.txt") {
      EXPECT_TRUE(layers.direct.contains(parts[1])) << parts[1];
    }
  }
}
TEST(Tidy, IncludesExist) {
  expect_none(check_includes(sources()));
}
TEST(Tidy, OnlyConfigReadsTheEnvironment) {
  expect_none(check_environment(sources()));
}
TEST(Tidy, Lines) {
  expect_none(check_lines(sources()));
}
TEST(Tidy, Lengths) {
  expect_none(check_lengths(sources()));
}
TEST(Tidy, Folders) {
  expect_none(check_folders(sources()));
}
TEST(Tidy, Heads) {
  expect_none(check_heads(sources()));
}
TEST(Tidy, ListsAreSorted) {
  expect_none(check_lists(sources()));
}
TEST(Tidy, NothingUnfinished) {
  expect_none(check_words(sources()));
}
TEST(Tidy, Manuals) {
  expect_none(check_manuals(sources()));
}
TEST(Tidy, EveryFileIsBuilt) {
  std::ifstream file(COMPILE_COMMANDS);
  std::ostringstream json;
  json << file.rdbuf();
  const std::set<std::string> compiled = compiled_sources(json.str(), SOURCE_DIRECTORY);
  EXPECT_GT(compiled.size(), 50U) << COMPILE_COMMANDS;
  expect_none(check_built(sources(), compiled));
}

}  // namespace
}  // namespace hcomm::tidy
