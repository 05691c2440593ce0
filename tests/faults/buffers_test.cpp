// SPDX-License-Identifier: Apache-2.0
// Faults that users reported against other libraries, as small cases: zero lengths, bounds,
// aliases. Each test bears the identifier of its case.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "collective/exercise.h"
#include "faults/sparse.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

const char* const kTransports[] = {"shm", "tcp"};

class ZeroLengthOver : public Everywhere {};
HCOMM_EVERYWHERE(ZeroLengthOver);
class BuffersOver : public Everywhere {};
HCOMM_EVERYWHERE(BuffersOver);
class LargeCountsOver : public Everywhere {};
HCOMM_EVERYWHERE(LargeCountsOver);

void call_all_for_nothing(const Rank& self, void* from, void* to, hcommDataType_t type) {
  const auto c = self.comm;
  self.ok(hcommAllReduce(from, to, 0, type, hcommSum, c, nullptr), "allreduce");
  self.ok(hcommReduce(from, to, 0, type, hcommSum, 1, c, nullptr), "reduce");
  self.ok(hcommBroadcast(from, to, 0, type, 2, c, nullptr), "broadcast");
  self.ok(hcommAllGather(from, to, 0, type, c, nullptr), "allgather");
  self.ok(hcommReduceScatter(from, to, 0, type, hcommSum, c, nullptr), "reducescatter");
  self.ok(hcommAllToAll(from, to, 0, type, c, nullptr), "alltoall");
  self.ok(hcommGather(from, to, 0, type, 3, c, nullptr), "gather");
  self.ok(hcommScatter(from, to, 0, type, 0, c, nullptr), "scatter");
  self.ok(hcommBarrier(c, nullptr), "barrier");
  const size_t none[4] = {}, places[4] = {0, 7, 3, 1};
  for (const size_t* at : {static_cast<const size_t*>(nullptr), places}) {
    self.ok(hcommAllGatherV(from, to, none, at, type, c, nullptr), "allgatherv");
    self.ok(hcommReduceScatterV(from, to, none, at, type, hcommMax, c, nullptr), "reducescatterv");
    self.ok(hcommAllToAllV(from, none, at, to, none, at, type, c, nullptr), "alltoallv");
    self.ok(hcommGatherV(from, 0, to, none, at, type, 2, c, nullptr), "gatherv");
    self.ok(hcommScatterV(from, none, at, to, 0, type, 1, c, nullptr), "scatterv");
  }
  hcommGroupStart();
  hcommSend(from, 0, type, (self.rank + 1) % self.ranks, c, nullptr);
  hcommRecv(to, 0, type, (self.rank + self.ranks - 1) % self.ranks, c, nullptr);
  self.ok(hcommGroupEnd(), "send and receive");
}

TEST_P(ZeroLengthOver, ZER_01_EveryCollectiveOfNothing) {
  const std::string wrong = run_world(4, {.transports = transport()}, [](const Rank& self) {
    char from = 42, to = 42;
    for (int t = 0; t < hcommNumTypes; t++) {
      const auto type = static_cast<hcommDataType_t>(t);
      call_all_for_nothing(self, nullptr, nullptr, type);
      call_all_for_nothing(self, &from, &from, type);
      call_all_for_nothing(self, &from, &to, type);
    }
    if (from != 42 || to != 42) self.findings->add("a byte was written");
  });
  EXPECT_EQ(wrong, "");
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

// In place nowhere, everywhere, and on rank 0 only.
enum class InPlace { nowhere, everywhere, rank0 };
constexpr InPlace kInPlace[] = {InPlace::nowhere, InPlace::everywhere, InPlace::rank0};
bool applies(InPlace where, int rank) {
  return where == InPlace::everywhere || (where == InPlace::rank0 && rank == 0);
}

TEST_P(ZeroLengthOver, ZER_05_AllToAllVWhereSomePairsAreEmpty) {
  const std::string wrong = run_world(4, {.transports = transport()}, [](const Rank& self) {
    for (const InPlace where : kInPlace)
      for (const size_t count : {0, 1, 3, 3000})
        perform(self, {.collective = Collective::all_to_all, .varied = true,
                       .in_place = applies(where, self.rank), .count = count,
                       .both_ways = where != InPlace::nowhere});
  });
  EXPECT_EQ(wrong, "");
}

// Displacements reversed, gaps between the blocks, in place.
TEST_P(BuffersOver, BUF_01_AllGatherVInPlaceTakesItsOwnBlockFromItsDisplacement) {
  const std::string wrong = run_world(4, {.transports = transport()}, [](const Rank& self) {
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

// The same of every V form; perform() looks at the gaps of both buffers.
TEST_P(BuffersOver, BUF_01_ReversedBlocksOfEveryVForm) {
  const std::string wrong = run_world(4, {.transports = transport()}, [](const Rank& self) {
    for (int c = 0; c < schedule::kCollectives; c++)
      for (const InPlace where : kInPlace)
        for (const size_t count : {1, 5, 3000})
          if (const auto collective = static_cast<Collective>(c); has_varied(collective))
            perform(self, {.collective = collective, .varied = true,
                           .in_place = applies(where, self.rank), .count = count, .root = 2,
                           .reversed = true, .both_ways = true});
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
TEST_P(BuffersOver, BUF_07_OddTilesGiveRightSums) {
  for (const char* tile : {"1", "4099", "12345", "1000000"}) {
    Settings settings{.transports = transport()};
    settings.rules = std::string("[tuning]\ncollective=allreduce -> tile=") + tile + "\n";
    const size_t count = *tile == '1' && tile[1] == '\0' ? 1111 : 262147;
    EXPECT_EQ(run_world(3, settings, [&](const Rank& self) {
                perform(self, {.type = Type::int32, .count = count});
                perform(self, {.in_place = true, .type = Type::int32, .count = count});
              }), "") << "tile " << tile;
  }
}

TEST(Buffers, BUF_07_OddRingsGiveRightSums) {
  for (const char* ring : {"1", "12345", "1000003"}) {
    Settings settings{.transports = "shm"};
    settings.environment = {std::string("HCOMM_RING=") + ring, "HCOMM_SHM_PULL=off"};
    EXPECT_EQ(run_world(3, settings, [](const Rank& self) {
                perform(self, {.type = Type::int32, .count = 262147});
              }), "") << "ring " << ring;
  }
}

// Out of place, and with one buffer for both on every rank: it is output at the root alone.
TEST_P(BuffersOver, BUF_09_ReduceLeavesTheBuffersOfOthersAlone) {
  for (const int ranks : {2, 5}) {
    const auto reduce = [](const Rank& self, int root, size_t count, bool in_place) {
      const auto mine = static_cast<float>(self.rank + 1);
      std::vector<float> in(count, mine), out(count, -5.0f);
      self.ok(hcommReduce(in.data(), in_place ? in.data() : out.data(), count, hcommFloat32,
                          hcommSum, root, self.comm, nullptr), "reduce");
      const float sum = static_cast<float>(self.ranks * (self.ranks + 1)) / 2;
      const bool at_root = self.rank == root;
      const float in_want = at_root && in_place ? sum : mine;
      const float out_want = at_root && !in_place ? sum : -5.0f;
      for (size_t i = 0; i < count; i++)
        if (out[i] != out_want || in[i] != in_want)
          return self.findings->add("rank " + std::to_string(self.rank) + " root " +
                                    std::to_string(root) + ": buffers were changed");
    };
    EXPECT_EQ(run_world(ranks, {.transports = transport()}, [&](const Rank& self) {
                for (int root = 0; root < self.ranks; root++)
                  for (const size_t count : {5, 5000, 200000})
                    for (const bool in_place : {false, true}) reduce(self, root, count, in_place);
              }), "") << ranks;
  }
}

// The blocks are sparse: displacements pass 2^31 elements.
TEST_P(LargeCountsOver, BIG_03_DisplacementsPastTwoToThe31) {
  const size_t gap = size_t{1} << 30, count = 1000;
  const std::string wrong = run_world(4, {.transports = transport()}, [&](const Rank& self) {
    const size_t counts[] = {count, count, count, count};
    const size_t displs[] = {0, gap, 2 * gap, 3 * gap};
    const Sparse recv(3 * gap + count);
    std::vector<signed char> send(count, static_cast<signed char>(self.rank + 1));
    self.ok(hcommAllGatherV(send.data(), recv.data(), counts, displs, hcommInt8, self.comm,
                            nullptr), "allgatherv");
    for (int r = 0; r < 4; r++)
      for (size_t i = 0; i < count; i++)
        if (recv.data()[displs[r] + i] != r + 1) return self.findings->add("wrong data");
  });
  EXPECT_EQ(wrong, "");
}

// The sum of counts passes 2^31; the root's own block, which stays where it is, is most of it.
TEST_P(LargeCountsOver, BIG_03_CountsWhoseSumPassesTwoToThe31) {
  const size_t most = (size_t{1} << 31) + 5, few = 1000;
  const std::string wrong = run_world(3, {.transports = transport()}, [&](const Rank& self) {
    const size_t counts[] = {most, few, few}, displs[] = {few, most + few, 0};
    const bool root = self.rank == 0;
    for (const size_t* at : {static_cast<const size_t*>(nullptr), displs}) {
      const Sparse all(root ? most + 2 * few : 1);
      const auto block = [&](int rank) {
        return all.data() + (at ? at[rank] : rank == 0 ? 0 : most + (rank == 1 ? 0 : few));
      };
      std::vector<signed char> own(few, static_cast<signed char>(self.rank));
      self.ok(hcommGatherV(root ? block(0) : own.data(), counts[self.rank], all.data(), counts, at,
                           hcommInt8, 0, self.comm, nullptr), "gatherv");
      for (int rank = 1; root && rank < 3; rank++)
        if (std::count(block(rank), block(rank) + few, rank) != static_cast<long>(few))
          self.findings->add("gatherv: wrong data");
      std::fill(own.begin(), own.end(), 9);
      self.ok(hcommScatterV(all.data(), counts, at, root ? block(0) : own.data(),
                            counts[self.rank], hcommInt8, 0, self.comm, nullptr), "scatterv");
      if (!root && std::count(own.begin(), own.end(), self.rank) != static_cast<long>(few))
        self.findings->add("scatterv: wrong data");
    }
  });
  EXPECT_EQ(wrong, "");
}

// What no memory can have is refused before anything moves, by every V form too.
TEST(LargeCounts, BIG_03_CountsThatMemoryCannotHaveAreRefused) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    float in = 1, out = 0;
    const auto refused = [&](hcommResult_t result, const char* what) {
      if (result != hcommInvalidArgument || !std::strstr(hcommGetLastError(nullptr), "more bytes"))
        self.findings->add(std::string(what) + ": " + hcommGetLastError(nullptr));
    };
    const auto c = self.comm;
    for (const size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1}) {
      refused(hcommAllGather(&in, &out, count, hcommFloat32, c, nullptr), "allgather");
      refused(hcommSend(&in, count, hcommFloat32, 1 - self.rank, c, nullptr), "send");
    }
    const size_t pairs[][2] = {{SIZE_MAX / 2, SIZE_MAX / 2 + 10}, {SIZE_MAX, 2},
                               {SIZE_MAX / 8, SIZE_MAX / 8 + 1}, {1, SIZE_MAX / 4}};
    const size_t far[] = {SIZE_MAX - 1, 0};
    for (const auto& counts : pairs)
      for (const size_t* at : {static_cast<const size_t*>(nullptr), far}) {
        const size_t own = counts[self.rank];
        refused(hcommAllGatherV(&in, &out, counts, at, hcommFloat32, c, nullptr), "allgatherv");
        refused(hcommReduceScatterV(&in, &out, counts, at, hcommFloat32, hcommSum, c, nullptr),
                "reducescatterv");
        refused(hcommAllToAllV(&in, counts, at, &out, counts, at, hcommFloat32, c, nullptr),
                "alltoallv");
        refused(hcommGatherV(&in, own, &out, counts, at, hcommFloat32, self.rank, c, nullptr),
                "gatherv");
        refused(hcommScatterV(&in, counts, at, &out, own, hcommFloat32, self.rank, c, nullptr),
                "scatterv");
      }
    self.ok(hcommBarrier(c, nullptr), "afterwards");
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hcomm::test
