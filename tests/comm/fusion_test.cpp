// SPDX-License-Identifier: Apache-2.0
// Fusion: which calls of a group are merged.
#include "comm/fusion.h"

#include <gtest/gtest.h>

#include <vector>

namespace hcomm::comm {
namespace {

using schedule::Collective;

Call sum(size_t count, Type type = Type::float32, Op op = Op::sum) {
  Call call;
  call.collective = Collective::all_reduce;
  call.type = type;
  call.op = op;
  call.count = count;
  return call;
}

// 10 us, and 1 us a KiB; a copy takes 0.1 us a KiB.
const Prices kPrices{
    [](const Call& call) {
      return 10 + static_cast<double>(call.count * size_of(call.type)) / 1024;
    },
    0.1 / 1024};

TEST(Fusion, MergesWhileLatencyIsSaved) {
  EXPECT_EQ(worth_merging(std::vector{sum(1)}, kPrices), 1u);
  EXPECT_EQ(worth_merging(std::vector{sum(1), sum(100), sum(0), sum(7)}, kPrices), 4u);
  // Copying 100 KiB costs what a call saves.
  EXPECT_EQ(worth_merging(std::vector{sum(25'600), sum(25'600)}, kPrices), 1u);
  EXPECT_EQ(worth_merging(std::vector<Call>(3, sum(250'000)), kPrices), 1u);
}

TEST(Fusion, MergesOnlyWhatIsAlike) {
  Call barrier, scaled = sum(1, Type::float32, Op::premul_sum);
  EXPECT_EQ(worth_merging(std::vector{sum(1), barrier}, kPrices), 1u);
  EXPECT_EQ(worth_merging(std::vector{barrier, sum(1)}, kPrices), 1u);
  EXPECT_EQ(worth_merging(std::vector{sum(1), sum(1), sum(1, Type::int32)}, kPrices), 2u);
  EXPECT_EQ(worth_merging(std::vector{sum(1), sum(1, Type::float32, Op::max)}, kPrices), 1u);
  EXPECT_EQ(worth_merging(std::vector{scaled, scaled}, kPrices), 1u);
}

TEST(Fusion, CallsThatDependOnOneAnotherAreFound) {
  float data[40] = {};
  const auto from_to = [&](size_t from, size_t to, size_t count) {
    Call call = sum(count);
    call.send = data + from;
    call.recv = data + to;
    return call;
  };
  const auto first = [](const std::vector<Call>& calls) { return first_dependent(calls); };
  EXPECT_EQ(first({from_to(0, 0, 4), from_to(4, 4, 4), from_to(8, 12, 4)}), 3u);
  EXPECT_EQ(first({from_to(0, 8, 4), from_to(8, 16, 4)}), 1u);
  EXPECT_EQ(first({from_to(0, 8, 4), from_to(16, 10, 1)}), 1u);
  EXPECT_EQ(first({from_to(0, 8, 4), from_to(0, 16, 4), from_to(7, 20, 2)}), 2u);
  EXPECT_EQ(first({from_to(0, 8, 4), Call{}, from_to(8, 16, 4)}), 3u);
  EXPECT_EQ(first({from_to(0, 0, 0), from_to(0, 0, 4)}), 2u);
}

TEST(Fusion, TheCutIsPartOfTheCall) {
  const std::vector<Call> one{sum(1), sum(2)}, other{sum(2), sum(1)};
  EXPECT_EQ(Fusion::merged(one).count, 3u);
  EXPECT_NE(Fusion::merged(one).cut, Fusion::merged(other).cut);
  EXPECT_NE(Fusion::merged(one).cut, 0u);
}

}  // namespace
}  // namespace hcomm::comm
