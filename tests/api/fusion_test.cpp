// SPDX-License-Identifier: Apache-2.0
// Small all-reduces of a group that travel as one: the results do not tell.
#include <algorithm>
#include <random>

#include "api/expect.h"

namespace hcomm::test {
namespace {

// What a rank contributes to call i: small halves, so that the order of additions shows.
std::vector<float> input(int rank, size_t i) {
  std::minstd_rand random(static_cast<unsigned>(rank * 1000) + static_cast<unsigned>(i));
  std::vector<float> values(1 + i * 37 % 300);
  for (float& value : values) value = static_cast<float>(random() % 10'000) / 7;
  return values;
}

class Fused : public Everywhere {};
HCOMM_EVERYWHERE(Fused);

TEST_P(Fused, AGroupGivesTheBitsOfItsCalls) {
  constexpr size_t kCalls = 40;
  const std::string wrong =
      run_world(3, {.transports = transport(), .deterministic = true}, [](const Rank& self) {
        std::vector<std::vector<float>> alone, in, grouped;
        const auto reduce = [&](const std::vector<float>& from, std::vector<float>& to) {
          return hcommAllReduce(from.data(), to.data(), to.size(), hcommFloat32, hcommAvg,
                                self.comm, nullptr);
        };
        for (size_t i = 0; i < kCalls; i++) {
          in.push_back(input(self.rank, i));
          alone.push_back(in.back());
          grouped.push_back(i % 2 == 0 ? in.back() : std::vector<float>(in.back().size()));
          self.ok(reduce(alone[i], alone[i]), "alone");
        }
        hcommGroupStart();
        for (size_t i = 0; i < kCalls; i++) {
          reduce(i % 2 == 0 ? grouped[i] : in[i], grouped[i]);
          if (i == kCalls / 2) hcommBarrier(self.comm, nullptr);
        }
        self.ok(hcommGroupEnd(), "group");
        for (size_t i = 0; i < kCalls; i++)
          if (grouped[i] != alone[i] || (i % 2 == 1 && in[i] != input(self.rank, i)))
            self.findings->add("call " + std::to_string(i) + " differs");
      });
  EXPECT_EQ(wrong, "");
}

TEST(Fused, CallsOfAGroupThatDependOnOneAnotherAreRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int a = 1, b = 0, c = 0;
    hcommGroupStart();
    hcommAllReduce(&a, &b, 1, hcommInt32, hcommSum, self.comm, nullptr);
    hcommAllReduce(&b, &c, 1, hcommInt32, hcommSum, self.comm, nullptr);
    expect(self, hcommGroupEnd(), hcommInvalidArgument, "the second reads what the first writes");
    expect(self, says(hcommGetLastError(nullptr), "number 2"), "which one");
    self.ok(sum_one(self, &b), "afterwards");
    expect(self, b == 2 && c == 0, "nothing to have run");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Fused, GroupsThatAreCutDifferentlyAreAnError) {
  const std::string wrong = run_world(2, {.timeout_ms = 20'000}, [](const Rank& self) {
    int data[4] = {1, 2, 3, 4};
    const size_t first = self.rank == 0 ? 1 : 2;
    hcommGroupStart();
    hcommAllReduce(data, data, first, hcommInt32, hcommSum, self.comm, nullptr);
    hcommAllReduce(data + 2, data + 2, 3 - first, hcommInt32, hcommSum, self.comm, nullptr);
    expect(self, hcommGroupEnd(), hcommInvalidUsage, "the group");
    expect(self, says(hcommGetLastError(self.comm), "of a group as one"), "what was merged");
  });
  for (const char* line : {"rank 0: destroy: invalid usage\n", "rank 1: destroy: invalid usage\n"})
    EXPECT_TRUE(says(wrong.c_str(), line)) << wrong;
  EXPECT_EQ(std::count(wrong.begin(), wrong.end(), '\n'), 2) << wrong;
}

}  // namespace
}  // namespace hcomm::test
