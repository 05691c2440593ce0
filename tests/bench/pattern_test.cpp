// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/check/pattern.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "datatype/kernels.h"
#include "hcc-bench/check/verify.h"

namespace hcomm::bench {
namespace {

constexpr size_t kElements = 600;

// The inputs of all ranks, reduced by the library's kernels in the order `ranks` says, one by one:
// every hop rounds to the type.
std::vector<unsigned char> reduce_in_order(const Pattern& pattern, Op op,
                                           const std::vector<int>& ranks) {
  const Type type = pattern.type();
  std::vector<unsigned char> result(kElements * size_of(type)), next(result.size());
  const double factor = kPremulFactor;
  unsigned char scalar[8] = {};
  store_value(type, scalar, factor);
  for (const int rank : ranks) {
    Values::of_rank(pattern, rank, 0, kElements).fill(next.data(), kElements);
    if (op == Op::premul_sum) scale(type, next.data(), next.data(), scalar, kElements);
    if (rank == ranks.front())
      result = next;
    else
      reduce2(type, op, result.data(), result.data(), next.data(), kElements);
  }
  if (op == Op::avg)
    finish_avg(type, result.data(), result.data(), kElements, static_cast<unsigned>(ranks.size()));
  return result;
}

// Every type, operator and rank count: what the check expects is what a reduction gives, in the
// order of ranks and in the reverse order.
TEST(Pattern, ExactInEveryTypeAndOrder) {
  for (int t = 0; t < kTypes; t++)
    for (int o = 0; o < kOps; o++)
      for (const int n : {1, 2, 3, 4, 7, 8, 16, 33, 64}) {
        const Type type = static_cast<Type>(t);
        const Op op = static_cast<Op>(o);
        if (!allowed(op, type)) continue;
        const Pattern pattern(type, op, n, 5);
        std::vector<int> order;
        for (int i = 0; i < n; i++) order.push_back(i);
        for (int turn = 0; turn < 2; turn++) {
          std::vector<unsigned char> result = reduce_in_order(pattern, op, order);
          std::vector<unsigned char> input(result.size());
          result.resize(result.size() + kGuardBytes, 0xa5);
          Values::of_rank(pattern, 0, 0, kElements).fill(input.data(), kElements);
          Task task{Operation::all_reduce, {0, n, 0}, {}, input.data(), result.data(), false};
          task.layout =
              layout(Operation::all_reduce, kElements * size_of(type), size_of(type), task.place);
          const Verdict verdict = verify(task, pattern);
          EXPECT_EQ(verdict.wrong, 0u)
              << name(type) << " " << name(op) << " " << n << ": " << verdict.text;
          std::reverse(order.begin(), order.end());
        }
      }
}

TEST(Pattern, RanksAndEpochsDiffer) {
  const Pattern pattern(Type::float32, std::nullopt, 8, 3);
  int equal = 0;
  for (size_t i = 0; i < kPeriod; i++) {
    equal += pattern.value(0, i) == pattern.value(1, i);
    equal += pattern.value(0, i) == pattern.before().value(0, i);
  }
  EXPECT_LT(equal, 20);
}

TEST(Values, FillAndCompareOverSeveralPeriods) {
  const Pattern pattern(Type::int32, Op::sum, 3, 1);
  const size_t count = 3 * kPeriod + 17;
  std::vector<int32_t> data(count);
  const Values values = Values::of_rank(pattern, 2, 100, count);
  values.fill(data.data(), count);
  EXPECT_EQ(values.first_difference(data.data(), count), count);
  for (const size_t at : {size_t{0}, kPeriod - 1, 2 * kPeriod, count - 1}) {
    data[at] ^= 1;
    EXPECT_EQ(values.first_difference(data.data(), count), at);
    data[at] ^= 1;
    EXPECT_EQ(data[at], pattern.value(2, 100 + at));
  }
}

// One rank of an all-reduce over 4, with a result that a test spoils.
class Faults : public testing::Test {
 protected:
  void SetUp() override {
    task_.layout = layout(Operation::all_reduce, kElements * 4, 4, task_.place);
    task_.send = send_.data();
    task_.recv = recv_.data();
    prepare(task_, pattern_);
  }
  void give_result() { Values::of_result(pattern_, 0, kElements).fill(recv_.data(), kElements); }
  void expect(const char* guess) {
    const Verdict verdict = verify(task_, pattern_);
    EXPECT_GT(verdict.wrong, 0u);
    EXPECT_NE(verdict.text.find(guess), std::string::npos) << verdict.text;
  }

  Pattern pattern_{Type::float32, Op::sum, 4, 9};
  std::vector<float> send_ = std::vector<float>(kElements + 16);
  std::vector<float> recv_ = std::vector<float>(kElements + 16);
  Task task_{Operation::all_reduce, {1, 4, 0}, {}, nullptr, nullptr, false};
};

TEST_F(Faults, NoneInARightResult) {
  give_result();
  EXPECT_EQ(verify(task_, pattern_).wrong, 0u);
}

TEST_F(Faults, NeverWritten) {
  expect("never written");
}

TEST_F(Faults, OneElement) {
  give_result();
  recv_[17] += 1;
  const Verdict verdict = verify(task_, pattern_);
  EXPECT_EQ(verdict.wrong, 1u);
  const double expected = pattern_.reduced(17);
  EXPECT_NE(
      verdict.text.find(fmt::format("element 17: expected {}, got {}", expected, expected + 1)),
      std::string::npos)
      << verdict.text;
}

TEST_F(Faults, DataMissingAndAddedTwice) {
  give_result();
  for (size_t i = 0; i < kElements; i++) recv_[i] -= static_cast<float>(pattern_.value(3, i));
  expect("rank 3's data missing");
  give_result();
  for (size_t i = 0; i < kElements; i++) recv_[i] += static_cast<float>(pattern_.value(2, i));
  expect("rank 2's data added twice");
}

TEST_F(Faults, StaleAnotherRanksAndMoved) {
  Values::of_result(pattern_.before(), 0, kElements).fill(recv_.data(), kElements);
  expect("stale, from the previous iteration");
  Values::of_rank(pattern_, 2, 0, kElements).fill(recv_.data(), kElements);
  expect("looks like rank 2's data");
  Values::of_result(pattern_, 3, kElements).fill(recv_.data(), kElements);
  expect("3 elements too early");
}

TEST_F(Faults, BeyondTheResultAndIntoTheInput) {
  give_result();
  recv_[kElements] = 1;
  expect("behind the result");
  recv_[kElements] = recv_[kElements + 1];
  send_[5] += 1;
  expect("element 5 of the input");
}

TEST_F(Faults, ASpoiledByteIsSeenInEveryType) {
  for (int t = 0; t < kTypes; t++)
    for (const Op op : {Op::sum, Op::avg, Op::max}) {
      const Type type = static_cast<Type>(t);
      const Pattern pattern(type, op, 4, 9);
      std::vector<unsigned char> send(kElements * 8 + kGuardBytes), recv(send);
      Task task{Operation::all_reduce, {1, 4, 0}, {}, send.data(), recv.data(), false};
      task.layout =
          layout(Operation::all_reduce, kElements * size_of(type), size_of(type), task.place);
      prepare(task, pattern);
      Values::of_result(pattern, 0, kElements).fill(recv.data(), kElements);
      EXPECT_EQ(verify(task, pattern).wrong, 0u) << name(type);
      spoil(task, type);
      EXPECT_EQ(verify(task, pattern).wrong, 1u) << name(type) << " " << name(op);
    }
}

}  // namespace
}  // namespace hcomm::bench
