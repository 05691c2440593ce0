// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the table, forced by a rule, over every transport: right results, with tiles
// and windows that cut the message at odd places; all ranks hold the same bits; deterministic mode
// holds its promise.
#include <mutex>

#include "algorithm/algorithm.h"
#include "collective/exercise.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

struct Forced {
  const algorithm::Algorithm* algorithm;
  const char* transport;
};

class Algorithms : public testing::TestWithParam<Forced> {};

TEST_P(Algorithms, RightWithAnyTileAndRanks) {
  const auto& [algorithm, transport] = GetParam();
  for (const int ranks : {2, 3, 5, 8})
    for (const char* tile : {"", "tile=1000", "tile=12345"}) {
      if (*tile != '\0' && ranks != 3 && ranks != 8) continue;
      Settings settings{.transports = transport};
      settings.rules = rules_for(*algorithm, tile);
      const std::string wrong = run_world(ranks, settings, [&](const Rank& self) {
        for (const size_t count : {1, 17, 5000, 100003})
          for (const bool in_place : {false, true})
            for (int root = 0; root < self.ranks; root += std::max(1, self.ranks - 1)) {
              if (root > 0 && !schedule::rooted(algorithm->collective)) break;
              perform(self, {.collective = algorithm->collective, .in_place = in_place,
                             .count = count, .root = root});
            }
      });
      ASSERT_EQ(wrong, "") << ranks << " ranks" << tile;
    }
}

std::vector<Forced> table() {
  std::vector<Forced> all;
  for (const algorithm::Algorithm& each : algorithm::all())
    for (const char* transport : {"shm", "tcp"}) all.push_back({&each, transport});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, Algorithms, testing::ValuesIn(table()), [](const auto& place) {
  std::string collective(schedule::name(place.param.algorithm->collective));
  std::erase(collective, '_');
  return collective + "_" + std::string(place.param.algorithm->name) + "_" + place.param.transport;
});

}  // namespace
}  // namespace hcomm::test
