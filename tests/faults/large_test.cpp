// SPDX-License-Identifier: Apache-2.0
// Reported faults of large counts and sizes that need gigabytes of memory: label "long".
#include <algorithm>

#include "collective/exercise.h"
#include "faults/sparse.h"

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

// Over 2 GiB from one rank to the other; untouched memory is read as zeros.
TEST(LargeCounts, BIG_03_AllGatherVOfOver2GiB) {
  const size_t most = (size_t{1} << 31) + 5, few = 1000;
  for (const char* transport : {"shm", "tcp"})
    EXPECT_EQ(run_world(2, {.transports = transport}, [&](const Rank& self) {
                const size_t counts[] = {most, few};
                const Sparse all(most + few);
                signed char* const own = all.data() + (self.rank == 0 ? 0 : most);
                std::fill_n(own + counts[self.rank] - few, few, self.rank + 1);
                if (self.rank == 1) all.data()[most - few - 1] = 7;
                self.ok(hcommAllGatherV(own, all.data(), counts, nullptr, hcommInt8, self.comm,
                                        nullptr), "allgatherv");
                for (size_t i = 0; i < 2 * few; i++)
                  if (all.data()[most - few + i] != (i < few ? 1 : 2))
                    return self.findings->add("wrong byte " + std::to_string(i));
                if (all.data()[most - few - 1] != 0) self.findings->add("a byte did not come");
              }), "") << transport;
}

// 64 MiB in tiles and rings that divide nothing.
TEST(Buffers, BUF_07_OddTilesAndRingsOf64MiB) {
  for (const char* transport : {"shm", "tcp"})
    for (const char* tile : {"1000000", "1234567"}) {
      Settings settings{.transports = transport};
      settings.rules = std::string("[tuning]\ncollective=allreduce -> tile=") + tile + "\n";
      settings.environment = {"HCOMM_RING=1000003"};
      EXPECT_EQ(run_world(3, settings, [](const Rank& self) {
                  perform(self, {.type = Type::int32, .count = size_t{1} << 24});
                }), "") << transport << " " << tile;
    }
}

}  // namespace
}  // namespace hcomm::test
