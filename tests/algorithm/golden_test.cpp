// SPDX-License-Identifier: Apache-2.0
// The 4-rank dumps of every algorithm against golden/<collective>.<name>.txt, so that a change of
// an algorithm is reviewed as a change of its dump. `algorithm_golden_test --update` rewrites them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "algorithm/algorithm.h"
#include "schedule/dump.h"

namespace hcomm::algorithm {
namespace {

namespace fs = std::filesystem;

bool update_golden = false;

fs::path golden_path(const Algorithm& algorithm) {
  return fs::path(GOLDEN_DIRECTORY) /
         fmt::format("{}.{}.txt", schedule::name(algorithm.collective), algorithm.name);
}

std::string dump_all(const Algorithm& algorithm) {
  const schedule::Shape shape{
      .collective = algorithm.collective,
      .ranks = 4,
      .root = schedule::rooted(algorithm.collective) ? 1u : 0u};  // not 0: shows the turn
  std::string text;
  for (const schedule::Schedule& schedule : build_all(algorithm, shape))
    text += schedule::dump(schedule);
  return text;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Golden, DumpsAreAsReviewed) {
  for (const Algorithm& algorithm : all()) {
    const fs::path path = golden_path(algorithm);
    const std::string text = dump_all(algorithm);
    if (update_golden) std::ofstream(path) << text;
    EXPECT_EQ(read(path), text) << "the dump differs from " << path
                                << "; if it should, run algorithm_golden_test --update";
  }
}

TEST(Golden, NoFileIsLeftOver) {
  std::set<fs::path> known;
  for (const Algorithm& algorithm : all()) known.insert(golden_path(algorithm));
  for (const fs::directory_entry& entry : fs::directory_iterator(GOLDEN_DIRECTORY))
    EXPECT_TRUE(known.contains(entry.path())) << entry.path() << " is of no algorithm; delete it";
}

}  // namespace
}  // namespace hcomm::algorithm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  hcomm::algorithm::update_golden = argc > 1 && std::string_view(argv[1]) == "--update";
  return RUN_ALL_TESTS();
}
