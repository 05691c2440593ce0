// SPDX-License-Identifier: Apache-2.0
// Faults that users reported against other libraries, as small cases: zero lengths, bounds,
// aliases. Each test bears the identifier of its case.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "collective/exercise.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

const char* const kTransports[] = {"shm", "tcp"};

TEST(ZeroLength, ZER_01_EveryCollectiveOfNothing) {
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(4, {.transports = transport}, [](const Rank& self) {
      char byte = 42;
      for (int t = 0; t < hcommNumTypes; t++)
        for (void* pointer : {static_cast<void*>(nullptr), static_cast<void*>(&byte)}) {
          const auto type = static_cast<hcommDataType_t>(t);
          const auto c = self.comm;
          self.ok(hcommAllReduce(pointer, pointer, 0, type, hcommSum, c, nullptr), "allreduce");
          self.ok(hcommReduce(pointer, pointer, 0, type, hcommSum, 1, c, nullptr), "reduce");
          self.ok(hcommBroadcast(pointer, pointer, 0, type, 2, c, nullptr), "broadcast");
          self.ok(hcommAllGather(pointer, pointer, 0, type, c, nullptr), "allgather");
          self.ok(hcommReduceScatter(pointer, pointer, 0, type, hcommSum, c, nullptr), "rs");
          self.ok(hcommAllToAll(pointer, pointer, 0, type, c, nullptr), "alltoall");
          self.ok(hcommGather(pointer, pointer, 0, type, 3, c, nullptr), "gather");
          self.ok(hcommScatter(pointer, pointer, 0, type, 0, c, nullptr), "scatter");
        }
      if (byte != 42) self.findings->add("a byte was written");
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// A group of sends and receives in which some pairs have nothing to say.
TEST(ZeroLength, ZER_03_GroupedExchangeWithEmptyPairs) {
  const unsigned seed = 20261130;
  std::printf("seed %u\n", seed);
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(4, {.transports = transport}, [&](const Rank& self) {
      std::mt19937 random(seed);  // the same sequence on every rank
      for (int round = 0; round < 200; round++) {
        size_t counts[4][4];
        for (auto& row : counts)
          for (size_t& count : row) count = random() % 10 < 3 ? 0 : random() % 2000;
        std::vector<int> out[4], in[4];
        hcommGroupStart();
        for (int peer = 0; peer < 4; peer++) {
          out[peer].assign(counts[self.rank][peer], self.rank * 100 + peer);
          in[peer].assign(counts[peer][self.rank], -1);
          hcommRecv(in[peer].data(), in[peer].size(), hcommInt32, peer, self.comm, nullptr);
          hcommSend(out[peer].data(), out[peer].size(), hcommInt32, peer, self.comm, nullptr);
        }
        if (!self.ok(hcommGroupEnd(), "group")) return;
        for (int peer = 0; peer < 4; peer++)
          for (const int value : in[peer])
            if (value != peer * 100 + self.rank) return self.findings->add("wrong data");
      }
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

TEST(ZeroLength, ZER_05_AllToAllVWhereSomePairsAreEmpty) {
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(4, {.transports = transport}, [](const Rank& self) {
      for (const bool in_place : {false, true})
        for (const size_t count : {0, 1, 3})
          perform(self, {.collective = Collective::all_to_all, .varied = true,
                         .in_place = in_place, .count = count});
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// Displacements reversed, gaps between the blocks, in place.
TEST(Buffers, BUF_01_AllGatherVInPlaceTakesItsOwnBlockFromItsDisplacement) {
  const std::string wrong = run_world(4, {}, [](const Rank& self) {
    const size_t counts[] = {3, 5, 0, 7}, displs[] = {30, 20, 18, 2};
    std::vector<int> data(40, -7);
    for (size_t i = 0; i < counts[self.rank]; i++)
      data[displs[self.rank] + i] = self.rank * 1000 + static_cast<int>(i);
    self.ok(hcommAllGatherV(data.data() + displs[self.rank], data.data(), counts, displs,
                            hcommInt32, self.comm, nullptr), "allgatherv");
    std::vector<int> want(40, -7);
    for (int r = 0; r < 4; r++)
      for (size_t i = 0; i < counts[r]; i++) want[displs[r] + i] = r * 1000 + static_cast<int>(i);
    if (data != want) self.findings->add("rank " + std::to_string(self.rank) + ": wrong data");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Buffers, BUF_03_EqualPointersAreInPlace) {
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(3, {.transports = transport}, [](const Rank& self) {
      for (const size_t count : {1, 2, 63, 1000, 65536, 262144})
        for (const Collective collective : {Collective::all_reduce, Collective::reduce})
          perform(self, {.collective = collective, .in_place = true, .count = count});
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// Overlap that no rule allows is refused, and the communicator goes on.
TEST(Buffers, BUF_03_PartialOverlapIsRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    std::vector<float> data(100, 1.0f);
    const hcommResult_t refused =
        hcommAllReduce(data.data(), data.data() + 10, 50, hcommFloat32, hcommSum, self.comm,
                       nullptr);
    if (refused != hcommInvalidArgument) self.findings->add("overlap was not refused");
    if (std::string(hcommGetLastError(nullptr)).find("overlap") == std::string::npos)
      self.findings->add(std::string("text: ") + hcommGetLastError(nullptr));
    self.ok(hcommAllReduce(data.data(), data.data(), 100, hcommFloat32, hcommSum, self.comm,
                           nullptr), "afterwards");
  });
  EXPECT_EQ(wrong, "");
}

// Two pages that cannot be touched, with `bytes` that may be between them, flush against either.
class Guarded {
 public:
  explicit Guarded(size_t bytes, bool at_end) : page_(static_cast<size_t>(getpagesize())) {
    memory_ = static_cast<std::byte*>(mmap(nullptr, 3 * page_, PROT_NONE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + page_, page_, PROT_READ | PROT_WRITE);
    data_ = memory_ + page_ + (at_end ? page_ - bytes : 0);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(memory_, 3 * page_); }
  std::byte* data() const { return data_; }

 private:
  size_t page_;
  std::byte *memory_, *data_;
};

TEST(Buffers, BUF_05_NothingOutsideIsTouched) {
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(2, {.transports = transport}, [](const Rank& self) {
      for (int t = 0; t < hcommNumTypes; t++) {
        const auto type = static_cast<hcommDataType_t>(t);
        const size_t element = size_of(static_cast<Type>(t));
        for (size_t bytes = element; bytes <= 33 + 16; bytes += element)
          for (const bool at_end : {false, true}) {
            const Guarded from(bytes, at_end), to(bytes, at_end);
            std::memset(from.data(), 0, bytes);
            self.ok(hcommAllReduce(from.data(), to.data(), bytes / element, type, hcommMax,
                                   self.comm, nullptr), "allreduce");
          }
      }
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// Sizes of tiles and rings that divide nothing.
TEST(Buffers, BUF_07_OddTilesGiveRightSums) {
  for (const char* transport : kTransports)
    for (const char* tile : {"1000000", "12345", "4099"}) {
      Settings settings{.transports = transport};
      settings.rules = std::string("[tuning]\ncollective=allreduce -> tile=") + tile + "\n";
      const std::string wrong = run_world(3, settings, [](const Rank& self) {
        perform(self, {.type = Type::int32, .count = 1 << 19});
        perform(self, {.in_place = true, .type = Type::int32, .count = 262147});
      });
      EXPECT_EQ(wrong, "") << transport << " tile " << tile;
    }
}

TEST(Buffers, BUF_09_ReduceLeavesTheBuffersOfOthersAlone) {
  for (const int ranks : {2, 5}) {
    const std::string wrong = run_world(ranks, {}, [](const Rank& self) {
      for (int root = 0; root < self.ranks; root++)
        for (const size_t count : {5, 5000, 200000}) {
          std::vector<float> in(count, static_cast<float>(self.rank + 1)), out(count, -5.0f);
          self.ok(hcommReduce(in.data(), out.data(), count, hcommFloat32, hcommSum, root,
                              self.comm, nullptr), "reduce");
          const float want = self.rank == root
                                 ? static_cast<float>(self.ranks * (self.ranks + 1)) / 2
                                 : -5.0f;
          for (size_t i = 0; i < count; i++)
            if (out[i] != want || in[i] != static_cast<float>(self.rank + 1))
              return self.findings->add("rank " + std::to_string(self.rank) + " root " +
                                        std::to_string(root) + ": buffers were changed");
        }
    });
    EXPECT_EQ(wrong, "") << ranks;
  }
}

// Untouched memory costs nothing: the blocks are sparse, their sum passes 2^31 elements.
TEST(LargeCounts, BIG_03_GatherVPastTwoToThe31) {
  const size_t gap = size_t{1} << 30, count = 1000;
  const std::string wrong = run_world(4, {}, [&](const Rank& self) {
    const size_t counts[] = {count, count, count, count};
    const size_t displs[] = {0, gap, 2 * gap, 3 * gap};
    const size_t bytes = 3 * gap + count;
    auto* recv = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                                  0));
    std::vector<unsigned char> send(count, static_cast<unsigned char>(self.rank + 1));
    self.ok(hcommAllGatherV(send.data(), recv, counts, displs, hcommUint8, self.comm, nullptr),
            "allgatherv");
    for (int r = 0; r < 4; r++)
      for (size_t i = 0; i < count; i++)
        if (recv[displs[r] + i] != r + 1) return self.findings->add("wrong data");
    munmap(recv, bytes);
  });
  EXPECT_EQ(wrong, "");
}

TEST(LargeCounts, BIG_03_ACountThatMemoryCannotHaveIsRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    float in = 1, out = 0;
    for (const size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1})
      if (hcommAllGather(&in, &out, count, hcommFloat32, self.comm, nullptr) !=
          hcommInvalidArgument)
        self.findings->add("accepted count " + std::to_string(count));
    self.ok(hcommBarrier(self.comm, nullptr), "afterwards");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
