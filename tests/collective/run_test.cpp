// SPDX-License-Identifier: Apache-2.0
// Every collective over shm, tcp, and both between two hosts, as the policy would run it: rank
// counts, lengths, types, operators, in place and not, V forms. In a release build the whole of
// types x operators; under sanitizers every type and every operator at least once with each rank
// count.
#include <cstdio>

#include "collective/exercise.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kThinned = true;
#else
constexpr bool kThinned = false;
#endif

struct Where {
  const char* transport;
  int ranks;
};

class Run : public testing::TestWithParam<Where> {
 protected:
  void everywhere(const std::function<void(const Rank&)>& body) {
    const std::string wrong = run_world(GetParam().ranks, {.transports = GetParam().transport},
                                        body);
    EXPECT_EQ(wrong, "");
  }
};

TEST_P(Run, Collectives) {
  everywhere([](const Rank& self) {
    size_t calls = 0;
    for (int c = 0; c < schedule::kCollectives; c++)
      for (const size_t count : {0, 1, 17, 1000, 100003})
        for (const bool in_place : {false, true})
          for (const bool varied : {false, true}) {
            const auto collective = static_cast<Collective>(c);
            if (varied && !has_varied(collective)) continue;
            for (int root = 0; root < self.ranks; root += std::max(1, self.ranks - 1)) {
              if (root > 0 && !schedule::rooted(collective)) break;
              if (kThinned && count > 1000 && (root > 0 || varied)) continue;
              perform(self, {.collective = collective, .varied = varied, .in_place = in_place,
                             .count = count, .root = root});
              calls++;
            }
          }
    if (self.rank == 0)
      std::printf("%zu calls on %d ranks over %s\n", calls, self.ranks, GetParam().transport);
  });
}

TEST_P(Run, TypesAndOperators) {
  everywhere([](const Rank& self) {
    size_t calls = 0;
    for (int type = 0; type < kTypes; type++)
      for (int op = 0; op < kOps; op++) {
        const auto t = static_cast<Type>(type);
        const auto o = static_cast<Op>(op);
        if (!allowed(o, t) || (kThinned && (type + op) % 5 != self.ranks % 5)) continue;
        for (const Collective collective :
             {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
          for (const size_t count : {1, 17, 1000})
            for (const bool in_place : {false, true}) {
              perform(self, {.collective = collective, .in_place = in_place, .type = t, .op = o,
                             .count = count});
              calls++;
            }
      }
    if (self.rank == 0)
      std::printf("%zu calls on %d ranks over %s\n", calls, self.ranks, GetParam().transport);
  });
}

std::vector<Where> all_places() {
  std::vector<Where> all;
  for (const char* transport : {"shm", "tcp", "mixed"})
    for (const int ranks : {1, 2, 3, 4, 7, 8}) all.push_back({transport, ranks});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Places, Run, testing::ValuesIn(all_places()), [](const auto& place) {
  return std::string(place.param.transport) + std::to_string(place.param.ranks);
});

TEST(ManyRanks, SixtyFourThreadsComeUpAndSum) {
  for (const char* transport : {"shm", "tcp"})
    EXPECT_EQ(run_world(64, {.transports = transport}, [](const Rank& self) {
                for (const size_t count : {1, 1000})
                  perform(self, {.type = Type::int32, .count = count});
              }), "") << transport;
}

}  // namespace
}  // namespace hcomm::test
