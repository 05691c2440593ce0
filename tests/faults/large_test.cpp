// SPDX-License-Identifier: Apache-2.0
// The reported fault of large counts that needs 6 GB of memory: label "long".
#include "collective/exercise.h"

namespace hcomm::test {
namespace {

// 600 MiB from each of 4 ranks: the total passes 2 GiB at the inner nodes of a tree.
TEST(LargeCounts, BIG_01_GatherOf600MiBOverATree) {
  Settings settings;
  settings.rules = "[tuning]\ncollective=gather -> algorithm=binomial\n";
  const size_t count = size_t{600} << 20;
  const std::string wrong = run_world(4, settings, [&](const Rank& self) {
    std::vector<signed char> send(count, static_cast<signed char>(self.rank + 1));
    std::vector<signed char> recv(self.rank == 0 ? 4 * count : 0);
    self.ok(hcommGather(send.data(), recv.data(), count, hcommInt8, 0, self.comm, nullptr),
            "gather");
    for (size_t i = 0; i < recv.size(); i++)
      if (recv[i] != static_cast<signed char>(i / count + 1))
        return self.findings->add("wrong byte " + std::to_string(i));
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
