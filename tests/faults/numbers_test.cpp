// SPDX-License-Identifier: Apache-2.0
// Faults that users reported against other libraries, as small cases: the meaning of numbers, and
// that results are the same everywhere. Each test bears the identifier of its case.
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>

#include "algorithm/algorithm.h"
#include "datatype/kernels.h"
#include "collective/exercise.h"

namespace hcomm::test {
namespace {

using schedule::Collective;

const char* const kTransports[] = {"shm", "tcp"};

// Contributions with remainders and of both signs; integers divide toward zero.
template <typename T>
void average(const Rank& self, hcommDataType_t type) {
  for (int base : {-50, -7, 0, 7, 50}) {
    if (std::is_unsigned_v<T> && base < 0) continue;
    T in = static_cast<T>(base / self.ranks + self.rank), out = 99;
    long sum = 0;
    for (int r = 0; r < self.ranks; r++) sum += base / self.ranks + r;
    self.ok(hcommAllReduce(&in, &out, 1, type, hcommAvg, self.comm, nullptr), "avg");
    const T want = static_cast<T>(sum / self.ranks);
    if (out != want)
      self.findings->add("avg of " + std::to_string(sum) + " over " + std::to_string(self.ranks) +
                         ": got " + std::to_string(out));
  }
}

TEST(Numbers, NUM_01_IntegerAverageRoundsTowardZero) {
  for (const int ranks : {2, 3, 7})
    EXPECT_EQ(run_world(ranks, {}, [](const Rank& self) {
                average<int8_t>(self, hcommInt8);
                average<uint8_t>(self, hcommUint8);
                average<int32_t>(self, hcommInt32);
                average<uint32_t>(self, hcommUint32);
                average<int64_t>(self, hcommInt64);
                average<uint64_t>(self, hcommUint64);
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

// Every algorithm of every reducing collective, on both transports: the factors differ by rank.
TEST(Numbers, NUM_05_PreMulSumAndAverageEverywhere) {
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (!schedule::reduces(each.collective)) continue;
    for (const char* transport : kTransports) {
      Settings settings{.transports = transport};
      std::string name(schedule::name(each.collective));
      std::erase(name, '_');
      settings.rules = "[tuning]\ncollective=" + name + " -> algorithm=" + std::string(each.name) +
                       "\n";
      const std::string wrong = run_world(3, settings, [&](const Rank& self) {
        const float factor = static_cast<float>(self.rank + 1);
        hcommRedOp_t op;
        self.ok(hcommRedOpCreatePreMulSum(&op, &factor, hcommFloat32, self.comm), "create");
        const size_t count = 1000;
        std::vector<float> in(3 * count, 2.0f), out(count, -1.0f);
        for (const hcommRedOp_t use : {op, hcommAvg}) {
          hcommResult_t result = hcommSuccess;
          if (each.collective == Collective::all_reduce)
            result = hcommAllReduce(in.data(), out.data(), count, hcommFloat32, use, self.comm,
                                    nullptr);
          else if (each.collective == Collective::reduce)
            result = hcommReduce(in.data(), out.data(), count, hcommFloat32, use, 1, self.comm,
                                 nullptr);
          else
            result = hcommReduceScatter(in.data(), out.data(), count, hcommFloat32, use, self.comm,
                                        nullptr);
          self.ok(result, each.name.data());
          if (each.collective == Collective::reduce && self.rank != 1) continue;
          for (const float value : out)
            if (value != (use == op ? 12.0f : 2.0f))
              return self.findings->add("got " + std::to_string(value));
        }
      });
      EXPECT_EQ(wrong, "") << name << " " << each.name << " " << transport;
    }
  }
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

TEST(Numbers, NUM_11_OneRankIsTheIdentity) {
  const std::string wrong = run_world(1, {}, [](const Rank& self) {
    for (int c = 0; c < schedule::kCollectives; c++)
      for (int t = 0; t < kTypes; t++)
        for (int o = 0; o < kOps - 1; o++)
          for (const bool in_place : {false, true})
            if (allowed(static_cast<Op>(o), static_cast<Type>(t)))
              perform(self, {.collective = static_cast<Collective>(c), .in_place = in_place,
                             .type = static_cast<Type>(t), .op = static_cast<Op>(o), .count = 13});
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

// Ranks that work in place beside ranks that do not, types that round: every rank has the same
// bits.
TEST(Determinism, DET_03_AllRanksHoldTheSameBits) {
  for (const algorithm::Algorithm& each : algorithm::all()) {
    if (each.collective != Collective::all_reduce) continue;
    for (const int ranks : {3, 5, 8})
      for (const char* transport : kTransports) {
        Settings settings{.transports = transport};
        settings.rules = "[tuning]\ncollective=allreduce -> algorithm=" +
                         std::string(each.name) + "\n";
        std::mutex mutex;
        std::vector<std::string> bits;
        const std::string wrong = run_world(ranks, settings, [&](const Rank& self) {
          std::string mine;
          for (const Type type : {Type::float16, Type::bfloat16, Type::float32}) {
            const std::vector<float> data = random_floats(self.rank, 3000);
            std::vector<unsigned char> in(data.size() * size_of(type)), out(in.size());
            for (size_t i = 0; i < data.size(); i++)
              store_value(type, in.data() + i * size_of(type), static_cast<double>(data[i]));
            unsigned char* to = self.rank % 2 == 1 ? in.data() : out.data();
            self.ok(hcommAllReduce(in.data(), to, data.size(),
                                   static_cast<hcommDataType_t>(type), hcommSum, self.comm,
                                   nullptr), "allreduce");
            mine.append(reinterpret_cast<const char*>(to), out.size());
          }
          const std::lock_guard lock(mutex);
          bits.push_back(mine);
        });
        ASSERT_EQ(wrong, "");
        for (const std::string& other : bits)
          EXPECT_TRUE(other == bits[0]) << each.name << " " << ranks << " " << transport;
      }
  }
}

}  // namespace
}  // namespace hcomm::test
