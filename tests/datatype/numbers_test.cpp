// SPDX-License-Identifier: Apache-2.0
// The numbers themselves: conversions over all codes, float8 over all pairs, single rounding, NaN,
// signed zero, subnormals, averages; with every instruction set that runs here.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "datatype/reference.h"

namespace hcomm {
namespace {

using reference::Bits;

class Numbers : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernels(GetParam()); }
  void TearDown() override { select_kernels(""); }

  // One call over equally many elements of each input; the results' bits.
  static std::vector<Bits> reduced(Type type, Op op, const std::vector<std::vector<Bits>>& inputs) {
    std::vector<std::vector<char>> from;
    std::vector<const void*> pointers;
    for (const std::vector<Bits>& input : inputs) from.push_back(reference::packed(type, input));
    for (const std::vector<char>& input : from) pointers.push_back(input.data());
    std::vector<char> to(from[0].size());
    reduce(type, op, to.data(), pointers, inputs[0].size());
    return unpacked(type, to);
  }

  static std::vector<Bits> unpacked(Type type, const std::vector<char>& bytes) {
    std::vector<Bits> bits(bytes.size() / size_of(type));
    for (size_t i = 0; i < bits.size(); i++) bits[i] = reference::get(type, bytes.data(), i);
    return bits;
  }

  static Bits bits_of(Type type, double value) {
    Bits bits = 0;
    store_value(type, &bits, value);
    return bits;
  }

  static std::vector<Bits> all_codes(Type type) {
    std::vector<Bits> all(reference::codes(type));
    for (size_t code = 0; code < all.size(); code++) all[code] = code;
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, Numbers, testing::ValuesIn(reference::kernels_here()),
                         [](const auto& one) { return one.param; });

TEST_P(Numbers, EveryCodeIsReadAndWrittenExactly) {
  for (const Type type : reference::narrow_floats()) {
    for (const Bits code : all_codes(type)) {
      const double value = load_value(type, &code);
      const double expected = reference::number(type, code);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << name(type) << " " << code;
        ASSERT_EQ(bits_of(type, value), reference::canonical_nan(type));
      } else {
        ASSERT_EQ(value, expected) << name(type) << " " << code;
        ASSERT_EQ(std::signbit(value), std::signbit(expected));
        ASSERT_EQ(bits_of(type, value), code) << name(type);
      }
    }
  }
}

TEST_P(Numbers, MidpointsGoToTheEvenCode) {
  for (const Type type : reference::narrow_floats()) {
    for (const Bits code : all_codes(type)) {
      const Bits next = code + 1;
      const double low = reference::number(type, code), high = reference::number(type, next);
      if (!std::isfinite(low) || !std::isfinite(high) || std::signbit(low) != std::signbit(high))
        continue;
      const double middle = (low + high) / 2, zero = 0;
      ASSERT_EQ(bits_of(type, middle), code % 2 == 0 ? code : next) << name(type) << " " << code;
      ASSERT_EQ(bits_of(type, std::nextafter(middle, zero)), code) << name(type);
      ASSERT_EQ(bits_of(type, std::nextafter(middle, 2 * high)), next) << name(type);
    }
  }
}

TEST_P(Numbers, KernelsReadAndRoundEveryCode) {
  for (const Type type : reference::narrow_floats()) {
    const std::vector<Bits> codes = all_codes(type);
    const std::vector<Bits> minus_zero(codes.size(), Bits{codes.size() / 2});
    for (const size_t zeros : {1u, 2u}) {
      std::vector<std::vector<Bits>> inputs(zeros, minus_zero);
      inputs.push_back(codes);
      const std::vector<Bits> sums = reduced(type, Op::sum, inputs);
      for (const Bits code : codes)
        ASSERT_EQ(sums[code], reference::is_nan(type, code) ? reference::canonical_nan(type) : code)
            << name(type);
    }
  }
}

TEST_P(Numbers, KernelsScaleAndDivideEveryCode) {
  for (const Type type : reference::narrow_floats()) {
    const std::vector<Bits> codes = all_codes(type);
    const std::vector<char> from = reference::packed(type, codes);
    std::vector<char> to(from.size());
    for (const double factor : {0.5, 1.0 / 3, -1.5, 1.0 / 64, 12.0}) {
      const Bits scalar = bits_of(type, factor);
      scale(type, to.data(), from.data(), &scalar, codes.size());
      for (const Bits code : codes)
        ASSERT_EQ(reference::get(type, to.data(), code), reference::scaled(type, code, scalar))
            << name(type) << " " << code << " * " << factor;
    }
    for (const unsigned ranks : {2u, 3u, 7u, 64u, 1023u}) {
      finish_avg(type, to.data(), from.data(), codes.size(), ranks);
      for (const Bits code : codes)
        ASSERT_EQ(reference::get(type, to.data(), code), reference::divided(type, code, ranks))
            << name(type) << " " << code << " / " << ranks;
    }
  }
}

TEST_P(Numbers, EveryPairOfFloat8) {
  for (const Type type : {Type::float8e4m3, Type::float8e5m2}) {
    std::vector<Bits> a(65'536), b(65'536);
    for (size_t i = 0; i < a.size(); i++) a[i] = i / 256, b[i] = i % 256;
    for (const Op op : {Op::sum, Op::prod, Op::max, Op::min}) {
      const std::vector<Bits> results = reduced(type, op, {a, b});
      for (size_t i = 0; i < a.size(); i++)
        ASSERT_EQ(results[i], reference::fold(type, op, {a[i], b[i]}))
            << name(type) << " " << name(op) << " of " << a[i] << " and " << b[i];
    }
  }
}

TEST_P(Numbers, EveryCodeOfTheHalvesWithManyPartners) {
  std::mt19937_64 random(7);
  for (const Type type : {Type::float16, Type::bfloat16}) {
    const std::vector<Bits> codes = all_codes(type);
    for (const Op op : {Op::sum, Op::prod, Op::max, Op::min}) {
      for (int round = 0; round < 3; round++) {
        const std::vector<Bits> b = reference::random_elements(type, codes.size(), random);
        const std::vector<Bits> results = reduced(type, op, {codes, b});
        for (const Bits code : codes)
          ASSERT_EQ(results[code], reference::fold(type, op, {code, b[code]}))
              << name(type) << " " << name(op) << " of " << code << " and " << b[code];
      }
    }
  }
}

// Three halves can leave bits below all that float16 keeps, on either side of a midpoint.
TEST_P(Numbers, NUM_09_ManyInputsAreRoundedOnce) {
  const auto sum = [&](Type type, const std::vector<double>& values) {
    std::vector<std::vector<Bits>> inputs;
    for (const double value : values) inputs.push_back({bits_of(type, value)});
    const Bits result = reduced(type, Op::sum, inputs)[0];
    return load_value(type, &result);
  };
  EXPECT_EQ(sum(Type::float16, {2048, 1, 1}), 2050);  // each alone would be lost
  EXPECT_EQ(sum(Type::float16, {2048, 1, std::ldexp(1, -10)}), 2050);
  EXPECT_EQ(sum(Type::float16, {2048, 1, -std::ldexp(1, -10)}), 2048);
  EXPECT_EQ(sum(Type::bfloat16, {256, 1, 1}), 258);
  EXPECT_EQ(sum(Type::float8e4m3, {16, 0.5, 0.5}), 16);  // a midpoint: to even
  EXPECT_EQ(sum(Type::float8e4m3, {16, 0.5, 0.5, 0.5}), 18);
  EXPECT_EQ(sum(Type::float8e5m2, {8, 0.5, 0.5, 0.5}), 10);
  EXPECT_EQ(sum(Type::float16, {60'000, 60'000, -60'000}), 60'000);  // no overflow on the way
}

TEST_P(Numbers, NUM_09_NarrowSumsOfOnesDoNotSaturate) {
  for (const Type type : {Type::float16, Type::bfloat16}) {
    for (const size_t ranks : {8u, 64u, 512u, 20'000u}) {
      const std::vector<std::vector<Bits>> ones(ranks, std::vector<Bits>(3, bits_of(type, 1)));
      for (const Bits bits : reduced(type, Op::sum, ones))
        EXPECT_EQ(bits, reference::nearest(type, static_cast<double>(ranks))) << name(type);
    }
  }
}

TEST_P(Numbers, NUM_07_NanAndInfinity) {
  for (const Type type : reference::all_types()) {
    if (is_integer(type)) continue;
    const Bits nan = reference::canonical_nan(type);
    const Bits negative_nan = nan | Bits{1} << (size_of(type) * 8 - 1);
    const Bits one = bits_of(type, 1), infinite = bits_of(type, INFINITY);
    const Bits minus_infinite = bits_of(type, -INFINITY);
    const std::vector<std::vector<Bits>> cases = {
        {nan, nan},      {negative_nan, negative_nan}, {one, negative_nan}, {nan, one},
        {one, nan, one}, {one, one, negative_nan},     {nan, one, one, one}};
    for (const std::vector<Bits>& inputs : cases) {
      std::vector<std::vector<Bits>> wide;
      for (const Bits bits : inputs) wide.emplace_back(37, bits);
      for (const Op op : {Op::max, Op::min, Op::sum, Op::prod})
        for (const Bits bits : reduced(type, op, wide))
          ASSERT_EQ(bits, nan) << name(type) << " " << name(op);
    }
    ASSERT_EQ(reduced(type, Op::sum, {{infinite}, {minus_infinite}})[0], nan) << name(type);
    ASSERT_EQ(reduced(type, Op::prod, {{infinite}, {bits_of(type, 0)}})[0], nan) << name(type);
  }
}

TEST_P(Numbers, NUM_07_NoNanBecomesInfinity) {
  for (const Type type : {Type::float16, Type::bfloat16, Type::float8e5m2, Type::float8e4m3}) {
    std::vector<Bits> nans;
    for (const Bits code : all_codes(type))
      if (reference::is_nan(type, code)) nans.push_back(code);
    const std::vector<Bits> ones(nans.size(), bits_of(type, 1));
    for (const Op op : {Op::sum, Op::prod, Op::max, Op::min})
      for (const auto& inputs : {std::vector{nans, ones}, std::vector{ones, ones, nans}})
        for (const Bits bits : reduced(type, op, inputs))
          ASSERT_EQ(bits, reference::canonical_nan(type)) << name(type) << " " << name(op);
  }
}

TEST_P(Numbers, MinusZeroIsBelowZero) {
  for (const Type type : reference::all_types()) {
    if (is_integer(type)) continue;
    const Bits zero = 0, minus_zero = Bits{1} << (size_of(type) * 8 - 1);
    for (const size_t count : {1u, 50u}) {
      const std::vector<Bits> plus(count, zero), minus(count, minus_zero);
      for (const auto& inputs :
           {std::vector{plus, minus}, std::vector{minus, plus}, std::vector{minus, plus, minus}}) {
        ASSERT_EQ(reduced(type, Op::max, inputs), plus) << name(type);
        ASSERT_EQ(reduced(type, Op::min, inputs), minus) << name(type);
      }
      ASSERT_EQ(reduced(type, Op::max, {minus, minus}), minus) << name(type);
      ASSERT_EQ(reduced(type, Op::sum, {minus, minus}), minus) << name(type);
    }
  }
}

TEST_P(Numbers, SubnormalsAreKept) {
  for (const Type type : reference::all_types()) {
    if (is_integer(type)) continue;
    const std::vector<Bits> one(40, 1), two(40, 2), three(40, 3);
    EXPECT_EQ(reduced(type, Op::sum, {one, two}), three) << name(type);
    EXPECT_EQ(reduced(type, Op::sum, {one, one, one}), three) << name(type);
    EXPECT_EQ(reduced(type, Op::max, {one, two}), two) << name(type);
  }
}

TEST_P(Numbers, NUM_01_IntegerAveragesRoundTowardZero) {
  for (unsigned ranks = 1; ranks <= 300; ranks++) {
    int8_t small[256], small_result[256];
    uint8_t natural[256], natural_result[256];
    for (int i = 0; i < 256; i++) {
      small[i] = static_cast<int8_t>(i - 128);
      natural[i] = static_cast<uint8_t>(i);
    }
    finish_avg(Type::int8, small_result, small, 256, ranks);
    finish_avg(Type::uint8, natural_result, natural, 256, ranks);
    for (int i = 0; i < 256; i++) {
      ASSERT_EQ(small_result[i], (i - 128) / static_cast<int>(ranks)) << i - 128 << "/" << ranks;
      ASSERT_EQ(natural_result[i], i / static_cast<int>(ranks)) << i << "/" << ranks;
    }
  }
}

template <typename T>
void check_averages(Type type) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(11);
  std::vector<T> values = {0,
                           1,
                           2,
                           7,
                           22,
                           Limits::min(),
                           Limits::max(),
                           static_cast<T>(Limits::min() + 1),
                           static_cast<T>(-1),
                           static_cast<T>(-7),
                           static_cast<T>(-22)};
  while (values.size() < 300) values.push_back(static_cast<T>(random()));
  std::vector<unsigned> all_ranks = {
      2, 3, 5, 7, 641, 65'535, 65'536, 0x7fffffff, 0x80000000u, 0x80000001u, 0xffffffffu};
  for (int i = 0; i < 200; i++)
    all_ranks.push_back(2 + static_cast<unsigned>(random()) % (1u << i % 32));
  for (const unsigned ranks : all_ranks) {
    for (uint64_t multiple = 1; multiple < 4; multiple++) {  // around the steps of the quotient
      values[100 + multiple] = static_cast<T>(multiple * ranks);
      values[110 + multiple] = static_cast<T>(multiple * ranks - 1);
    }
    std::vector<T> result(values.size());
    finish_avg(type, result.data(), values.data(), values.size(), ranks);
    for (size_t i = 0; i < values.size(); i++) {
      const T expected = std::is_signed_v<T>
                             ? static_cast<T>(static_cast<int64_t>(values[i]) / int64_t{ranks})
                             : static_cast<T>(static_cast<uint64_t>(values[i]) / ranks);
      ASSERT_EQ(result[i], expected) << values[i] << " / " << ranks;
    }
  }
}

TEST_P(Numbers, NUM_01_WideIntegerAveragesAreExact) {
  check_averages<int32_t>(Type::int32);
  check_averages<uint32_t>(Type::uint32);
  check_averages<int64_t>(Type::int64);
  check_averages<uint64_t>(Type::uint64);
}

TEST_P(Numbers, NUM_03_NUM_11_OneRankWritesEveryElement) {
  std::mt19937_64 random(3);
  for (const Type type : {Type::bfloat16, Type::float16, Type::float32}) {
    const std::vector<Bits> elements = reference::random_elements(type, 4099, random);
    const std::vector<char> from = reference::packed(type, elements);
    const std::vector<Bits> nans(elements.size(), reference::canonical_nan(type));
    const std::vector<char> blank = reference::packed(type, nans);
    const Bits two = bits_of(type, 2);
    for (size_t count = 1; count <= 4099; count += count < 140 ? 1 : 97) {
      const size_t bytes = count * size_of(type);
      std::vector<char> average = blank, sum = blank, product = blank;
      finish_avg(type, average.data(), from.data(), count, 1);
      const void* const inputs[] = {from.data()};
      reduce(type, Op::sum, sum.data(), inputs, count);
      scale(type, product.data(), from.data(), &two, count);
      ASSERT_EQ(std::memcmp(average.data(), from.data(), bytes), 0) << name(type) << count;
      ASSERT_EQ(std::memcmp(sum.data(), from.data(), bytes), 0) << name(type) << count;
      for (size_t i = 0; i < count; i++)
        ASSERT_EQ(reference::get(type, product.data(), i),
                  reference::scaled(type, elements[i], two))
            << name(type) << " element " << i << " of " << count;
      ASSERT_EQ(std::memcmp(sum.data() + bytes, blank.data(), sum.size() - bytes), 0);
    }
  }
}

TEST(Values, IntegersRoundToEvenAndStopAtTheirBounds) {
  const auto stored = [](Type type, double value) {
    Bits bits = 0;
    store_value(type, &bits, value);
    return load_value(type, &bits);
  };
  EXPECT_EQ(stored(Type::int8, 2.5), 2);
  EXPECT_EQ(stored(Type::int8, -3.5), -4);
  EXPECT_EQ(stored(Type::int8, 1000), 127);
  EXPECT_EQ(stored(Type::int8, -1000), -128);
  EXPECT_EQ(stored(Type::uint8, -1), 0);
  EXPECT_EQ(stored(Type::uint8, 255), 255);
  EXPECT_EQ(stored(Type::int32, 2147483647), 2147483647);
  EXPECT_EQ(stored(Type::uint32, 4294967295.0), 4294967295.0);
  EXPECT_EQ(stored(Type::int64, -INFINITY), -9223372036854775808.0);
  EXPECT_EQ(stored(Type::uint64, INFINITY), 18446744073709551615.0);
  EXPECT_EQ(stored(Type::int32, NAN), 0);
  EXPECT_EQ(stored(Type::float32, 1e300), INFINITY);
  EXPECT_EQ(stored(Type::float64, 1e300), 1e300);
}

TEST(Values, OverflowFollowsTheFormat) {
  const auto stored = [](Type type, double value) {
    Bits bits = 0;
    store_value(type, &bits, value);
    return bits;
  };
  EXPECT_EQ(stored(Type::float16, 65'519), 0x7bffu);
  EXPECT_EQ(stored(Type::float16, 65'520), 0x7c00u);
  EXPECT_EQ(stored(Type::float16, -1e30), 0xfc00u);
  EXPECT_EQ(stored(Type::float8e5m2, 61'439), 0x7bu);
  EXPECT_EQ(stored(Type::float8e5m2, 61'440), 0x7cu);
  EXPECT_EQ(stored(Type::float8e4m3, 464), 0x7eu);  // the midpoint to 480, which is no number
  EXPECT_EQ(stored(Type::float8e4m3, 465), 0x7fu);
  EXPECT_EQ(stored(Type::float8e4m3, -INFINITY), 0x7fu);
  EXPECT_EQ(stored(Type::bfloat16, 3.4e38), 0x7f80u);
}

}  // namespace
}  // namespace hcomm
