// SPDX-License-Identifier: Apache-2.0
// Faults that users reported against other libraries, as small cases: the meaning of numbers, and
// that results are the same everywhere. Each test bears the identifier of its case.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "algorithm/algorithm.h"
#include "base/bytes.h"
#include "datatype/kernels.h"
#include "collective/exercise.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

const char* const kTransports[] = {"shm", "tcp"};

class NumbersOver : public Everywhere {};
HCOMM_EVERYWHERE(NumbersOver);
class DeterminismOver : public Everywhere {};
HCOMM_EVERYWHERE(DeterminismOver);

// A world for each algorithm of the collectives that reduce, in tiles of 100 bytes.
void for_each_reduction(const char* transport, int ranks,
                        const std::function<void(const Rank&, Collective)>& body) {
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (!schedule::reduces(each.collective)) continue;
    Settings settings{.transports = transport};
    settings.rules = rules_for(each, "tile=100");
    EXPECT_EQ(run_world(ranks, settings, [&](const Rank& self) { body(self, each.collective); }),
              "") << schedule::name(each.collective) << " " << each.name;
  }
}

// Sums with remainders and of both signs; integers divide toward zero, whatever the algorithm.
TEST_P(NumbersOver, NUM_01_IntegerAverageRoundsTowardZero) {
  for (const int ranks : {2, 3, 7})
    for_each_reduction(transport(), ranks, [](const Rank& self, Collective collective) {
      for (const Type type : {Type::int8, Type::uint8, Type::int32, Type::uint32, Type::int64,
                              Type::uint64})
        for (const bool in_place : {false, true})
          perform(self, {.collective = collective, .in_place = in_place, .type = type,
                         .op = Op::avg, .count = 120, .root = self.ranks - 1});
    });
}

// The greatest values of a type: nothing is lost on the way to the quotient.
template <typename T>
void average_of_extremes(const Rank& self, hcommDataType_t type) {
  const T top = static_cast<T>(std::numeric_limits<T>::max() / self.ranks);
  for (const T most : {top, static_cast<T>(std::is_signed_v<T> ? -top : 1)}) {
    T in = self.rank == 0 ? most : static_cast<T>(most - most / 3), out = 99;
    const T sum = static_cast<T>(most + (self.ranks - 1) * (most - most / 3));
    self.ok(hcommAllReduce(&in, &out, 1, type, hcommAvg, self.comm, nullptr), "avg");
    if (out != static_cast<T>(sum / static_cast<T>(self.ranks)))
      self.findings->add("avg of " + std::to_string(sum) + ": got " + std::to_string(out));
  }
}

TEST(Numbers, NUM_01_IntegerAverageOfExtremes) {
  for (const int ranks : {2, 3, 7})
    EXPECT_EQ(run_world(ranks, {}, [](const Rank& self) {
                average_of_extremes<int8_t>(self, hcommInt8);
                average_of_extremes<uint8_t>(self, hcommUint8);
                average_of_extremes<int32_t>(self, hcommInt32);
                average_of_extremes<uint32_t>(self, hcommUint32);
                average_of_extremes<int64_t>(self, hcommInt64);
                average_of_extremes<uint64_t>(self, hcommUint64);
              }), "");
}

TEST(Numbers, NUM_03_OneRankAverageWritesEveryElement) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    for (const Type type : {Type::bfloat16, Type::float16, Type::float32})
      for (size_t count = 1; count < 4100; count = count < 70 ? count + 1 : count * 2 + 1) {
        const size_t bytes = count * size_of(type);
        std::vector<unsigned char> in(bytes), out(bytes, 0xff);  // 0xff..: NaN
        for (size_t i = 0; i < count; i++)
          store_value(type, in.data() + i * size_of(type), static_cast<double>(i % 100));
        hcommRedOp_t twice;
        unsigned char two[8], want[8];
        store_value(type, two, 2);
        const auto t = static_cast<hcommDataType_t>(type);
        self.ok(hcommRedOpCreatePreMulSum(&twice, two, t, self.comm), "create");
        for (const hcommRedOp_t op : {hcommAvg, hcommSum, twice}) {
          std::fill(out.begin(), out.end(), 0xff);
          self.ok(hcommAllReduce(in.data(), out.data(), count, t, op, self.comm, nullptr), "call");
          for (size_t i = 0; i < count; i++) {
            const double factor = op == twice ? 2 : 1;
            store_value(type, want, factor * static_cast<double>(i % 100));
            if (std::memcmp(want, out.data() + i * size_of(type), size_of(type)) != 0)
              return self.findings->add("element " + std::to_string(i) + " of " +
                                        std::to_string(count));
          }
        }
        self.ok(hcommRedOpDestroy(twice, self.comm), "destroy");
      }
  });
  EXPECT_EQ(wrong, "");
}

// Every algorithm of every collective that reduces; the factors differ by rank.
TEST_P(NumbersOver, NUM_05_PreMulSumAndAverageEverywhere) {
  for_each_reduction(transport(), 3, [](const Rank& self, Collective collective) {
    for (const Type type : {Type::float32, Type::bfloat16, Type::int32})
      for (const Op op : {Op::premul_sum, Op::avg})
        for (const bool in_place : {false, true})
          perform(self, {.collective = collective, .in_place = in_place, .type = type, .op = op,
                         .count = 120, .root = 1});
  });
}

TEST(Numbers, NUM_07_NotANumberStaysOne) {
  for (const char* transport : kTransports) {
    const std::string wrong = run_world(3, {.transports = transport}, [](const Rank& self) {
      for (const Type type : {Type::float16, Type::bfloat16, Type::float32, Type::float64}) {
        const auto t = static_cast<hcommDataType_t>(type);
        unsigned char in[8], out[8];
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double inf = std::numeric_limits<double>::infinity();
        for (const hcommRedOp_t op : {hcommMin, hcommMax, hcommSum, hcommProd}) {
          store_value(type, in, nan);
          self.ok(hcommAllReduce(in, out, 1, t, op, self.comm, nullptr), "all NaN");
          if (!std::isnan(load_value(type, out))) self.findings->add("all NaN gave a number");
          store_value(type, in, self.rank == 1 ? nan : 1.0);
          self.ok(hcommAllReduce(in, out, 1, t, op, self.comm, nullptr), "one NaN");
          if (!std::isnan(load_value(type, out))) self.findings->add("one NaN gave a number");
        }
        store_value(type, in, self.rank == 0 ? inf : -inf);
        self.ok(hcommAllReduce(in, out, 1, t, hcommSum, self.comm, nullptr), "inf - inf");
        if (!std::isnan(load_value(type, out))) self.findings->add("inf - inf gave a number");
      }
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// Every collective with its V form, operator and type; PreMulSum multiplies.
TEST(Numbers, NUM_11_OneRankIsTheIdentity) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    for (int c = 0; c < schedule::kCollectives; c++)
      for (int t = 0; t < kTypes; t++)
        for (int o = 0; o < kOps; o++)
          for (const bool in_place : {false, true})
            for (const bool varied : {false, true}) {
              const auto collective = static_cast<Collective>(c);
              if (!allowed(static_cast<Op>(o), static_cast<Type>(t))) continue;
              if (varied && !has_varied(collective)) continue;
              perform(self, {.collective = collective, .varied = varied, .in_place = in_place,
                             .type = static_cast<Type>(t), .op = static_cast<Op>(o),
                             .count = 13});
            }
  });
  EXPECT_EQ(wrong, "");
}

// Random float32 of one rank; the same on every run.
std::vector<float> random_floats(int rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 7);
  std::uniform_real_distribution<float> values(-1e3f, 1e3f);
  std::vector<float> data(count);
  for (float& value : data) value = values(random);
  return data;
}

TEST(Determinism, DET_01_FusedAndApartGiveTheSameBits) {
  for (const char* transport : kTransports) {
    Settings settings{.transports = transport, .deterministic = true};
    const std::string wrong = run_world(4, settings, [](const Rank& self) {
      const std::vector<float> data = random_floats(self.rank, 20000);
      std::vector<float> whole(data.size()), halves(data.size());
      for (size_t split = 1; split <= 10000; split = split * 3 + 1) {
        self.ok(hcommAllReduce(data.data(), whole.data(), data.size(), hcommFloat32, hcommSum,
                               self.comm, nullptr), "whole");
        self.ok(hcommAllReduce(data.data(), halves.data(), split, hcommFloat32, hcommSum,
                               self.comm, nullptr), "first");
        self.ok(hcommAllReduce(data.data() + split, halves.data() + split, data.size() - split,
                               hcommFloat32, hcommSum, self.comm, nullptr), "second");
        if (std::memcmp(whole.data(), halves.data(), whole.size() * 4) != 0)
          self.findings->add("split at " + std::to_string(split) + ": other bits");
      }
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

// The same inputs over both transports and all admitted algorithms: one result.
TEST(Determinism, DET_01_TheSameBitsOnEveryPath) {
  std::string first;
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (each.collective != Collective::all_reduce || each.order != schedule::Order::rank) continue;
    for (const char* transport : kTransports)
      for (const bool in_place : {false, true}) {
        Settings settings{.transports = transport, .deterministic = true};
        settings.rules = "[tuning]\ncollective=allreduce -> algorithm=" +
                         std::string(each.name) + "\n";
        std::string bits;
        const std::string wrong = run_world(5, settings, [&](const Rank& self) {
          std::vector<float> in = random_floats(self.rank, 5000), out(in.size());
          std::vector<unsigned char> half(in.size() * 2), half_out(half.size());
          for (size_t i = 0; i < in.size(); i++)
            store_value(Type::float16, half.data() + 2 * i, static_cast<double>(in[i]));
          void* to = in_place ? static_cast<void*>(in.data()) : out.data();
          void* half_to = in_place ? half.data() : half_out.data();
          self.ok(hcommAllReduce(in.data(), to, in.size(), hcommFloat32, hcommSum, self.comm,
                                 nullptr), "float32");
          self.ok(hcommAllReduce(half.data(), half_to, in.size(), hcommFloat16, hcommSum,
                                 self.comm, nullptr), "float16");
          if (self.rank != 3) return;
          bits.assign(static_cast<const char*>(to), in.size() * 4);
          bits.append(static_cast<const char*>(half_to), half.size());
        });
        ASSERT_EQ(wrong, "");
        if (first.empty()) first = bits;
        EXPECT_TRUE(bits == first) << each.name << " " << transport << " in place " << in_place;
      }
  }
}

// True when all ranks have given the same bytes.
bool equal_everywhere(const Rank& self, const std::vector<unsigned char>& bytes) {
  uint64_t hash = kHashSeed;
  for (const unsigned char byte : bytes) hash = hash_number(byte, hash);
  std::vector<uint64_t> all(static_cast<size_t>(self.ranks));
  self.ok(hcommAllGather(&hash, all.data(), 1, hcommUint64, self.comm, nullptr), "hashes");
  return std::count(all.begin(), all.end(), hash) == self.ranks;
}

// Ranks that work in place beside ranks that do not, types that round, one tile and many: every
// rank has the same bits.
TEST_P(DeterminismOver, DET_03_AllRanksHoldTheSameBits) {
  for (const algorithm::Algorithm& each : algorithm::all())
    for (const int ranks : {3, 5, 8})
      for (const char* tile : {"", "tile=1000"}) {
        if (each.collective != Collective::all_reduce || (*tile == '\0' && ranks > 3)) continue;
        Settings settings{.transports = transport()};
        settings.rules = rules_for(each, tile);
        const std::string wrong = run_world(ranks, settings, [&](const Rank& self) {
          for (const Type type : {Type::float16, Type::bfloat16, Type::float32}) {
            const std::vector<float> data = random_floats(self.rank, 3000);
            std::vector<unsigned char> in(data.size() * size_of(type)), out(in.size());
            for (size_t i = 0; i < data.size(); i++)
              store_value(type, in.data() + i * size_of(type), static_cast<double>(data[i]));
            std::vector<unsigned char>& to = self.rank % 2 == 1 ? in : out;
            self.ok(hcommAllReduce(in.data(), to.data(), data.size(),
                                   static_cast<hcommDataType_t>(type), hcommSum, self.comm,
                                   nullptr), "allreduce");
            if (!equal_everywhere(self, to)) self.findings->add("bits differ between ranks");
          }
        });
        ASSERT_EQ(wrong, "") << each.name << " " << ranks << " " << tile;
      }
}

}  // namespace
}  // namespace hcomm::test
