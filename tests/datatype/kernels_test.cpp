// SPDX-License-Identifier: Apache-2.0
// Every type x operator x instruction set against reference.h, at every small count and offset,
// with inputs that are the output, and without a byte touched beside the elements.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "datatype/reference.h"

namespace hcomm {
namespace {

using reference::Bits;
using Elements = std::vector<Bits>;

constexpr uint64_t kSeed = 20240607;
constexpr char kCanary = 0x5b;

class Kernels : public testing::Test {
 protected:
  void SetUp() override { RecordProperty("seed", std::to_string(kSeed)); }
  void TearDown() override { select_kernels(""); }

  // Calls check(kernels) with each instruction set in force.
  template <typename Check>
  static void on_all(Check check) {
    for (const std::string& kernels : reference::kernels_here()) {
      SCOPED_TRACE("kernels " + kernels + ", seed " + std::to_string(kSeed));
      select_kernels(kernels);
      check();
      if (HasFatalFailure()) return;
    }
  }

  std::mt19937_64 random_{kSeed};
};

std::string describe(Type type, Op op) {
  return std::string(name(type)) + " " + std::string(name(op));
}

struct Case {
  Case(Type of, Op by, size_t inputs, size_t count, std::mt19937_64& random) : type(of), op(by) {
    std::vector<Elements> elements;
    for (size_t i = 0; i < inputs; i++) {
      elements.push_back(reference::random_elements(type, count, random));
      from.push_back(reference::packed(type, elements.back()));
    }
    Elements results(count);
    for (size_t i = 0; i < count; i++) {
      Elements here;
      for (const Elements& input : elements) here.push_back(input[i]);
      results[i] = reference::fold(type, op, here);
    }
    expected = reference::packed(type, results);
  }

  std::vector<const void*> pointers(size_t offset_bytes = 0) const {
    std::vector<const void*> all;
    for (const std::vector<char>& input : from) all.push_back(input.data() + offset_bytes);
    return all;
  }

  Type type;
  Op op;
  std::vector<std::vector<char>> from;
  std::vector<char> expected;
};

// The first element that differs, as text; empty if none.
std::string difference(const Case& c, const char* got, size_t first, size_t count) {
  const size_t size = size_of(c.type);
  if (std::memcmp(got, c.expected.data() + first * size, count * size) == 0) return {};
  for (size_t i = 0; i < count; i++) {
    const Bits expected = reference::get(c.type, c.expected.data(), first + i);
    const Bits found = reference::get(c.type, got, i);
    if (expected == found) continue;
    std::string text = fmt::format("{} element {} of {}:", describe(c.type, c.op), i, count);
    for (const std::vector<char>& input : c.from)
      text += fmt::format(" {:x}", reference::get(c.type, input.data(), first + i));
    return text + fmt::format(" -> {:x}, expected {:x}", found, expected);
  }
  return "unreachable";
}

bool untouched(const std::vector<char>& bytes, size_t from, size_t to) {
  for (size_t i = 0; i < bytes.size(); i++)
    if ((i < from || i >= to) && bytes[i] != kCanary) return false;
  return true;
}

TEST_F(Kernels, EveryTypeAndOperatorGivesTheReferenceAtEveryCount) {
  constexpr size_t kCount = 700;
  for (const Type type : reference::all_types()) {
    for (const Op op : reference::ops_of(type)) {
      for (const size_t inputs : {1u, 2u, 3u, 8u, 9u}) {
        const Case c(type, op, inputs, kCount, random_);
        on_all([&] {
          std::vector<size_t> counts = {kCount, 513, 256, 127};
          for (size_t count = 0; count <= 70; count++) counts.push_back(count);
          for (const size_t count : counts) {
            std::vector<char> to(count * size_of(type) + 64, kCanary);
            reduce(type, op, to.data() + 32, c.pointers(), count);
            ASSERT_EQ(difference(c, to.data() + 32, 0, count), "");
            ASSERT_TRUE(untouched(to, 32, 32 + count * size_of(type))) << count;
          }
        });
      }
    }
  }
}

TEST_F(Kernels, TwoInputsEqualTheirFold) {
  constexpr size_t kCount = 4099;
  for (const Type type : reference::all_types()) {
    for (const Op op : reference::ops_of(type)) {
      const Case c(type, op, 2, kCount, random_);
      on_all([&] {
        std::vector<char> to(kCount * size_of(type));
        reduce2(type, op, to.data(), c.from[0].data(), c.from[1].data(), kCount);
        ASSERT_EQ(difference(c, to.data(), 0, kCount), "");
      });
    }
  }
}

TEST_F(Kernels, AnyAlignmentWillDoAndStreamingEqualsCached) {
  constexpr size_t kCount = 1200;
  for (const Type type : reference::all_types()) {
    const Op op = is_integer(type) ? Op::bxor : Op::sum;
    for (const size_t inputs : {2u, 5u}) {
      Case c(type, op, inputs, kCount, random_);
      on_all([&] {
        for (int round = 0; round < 150; round++) {
          const size_t first = random_() % 40, count = random_() % (kCount - first),
                       shift = random_() % 130;
          const size_t bytes = count * size_of(type);
          std::vector<std::vector<char>> moved;
          std::vector<const void*> pointers;
          for (const std::vector<char>& input : c.from) {
            const size_t by = random_() % 67;
            moved.emplace_back(bytes + by);
            if (count > 0)
              std::memcpy(moved.back().data() + by, input.data() + first * size_of(type), bytes);
            pointers.push_back(moved.back().data() + by);
          }
          for (const Store store : {Store::cached, Store::streaming}) {
            std::vector<char> to(bytes + 200, kCanary);
            reduce(type, op, to.data() + shift, pointers, count, store);
            ASSERT_EQ(difference(c, to.data() + shift, first, count), "");
            ASSERT_TRUE(untouched(to, shift, shift + bytes)) << count << " at " << shift;
          }
        }
      });
    }
  }
}

TEST_F(Kernels, OutputMayBeAnyInput) {
  constexpr size_t kCount = 300;
  for (const Type type : reference::all_types()) {
    for (const Op op : {Op::sum, Op::prod, Op::max}) {
      for (const size_t inputs : {1u, 2u, 3u, 7u}) {
        const Case c(type, op, inputs, kCount, random_);
        on_all([&] {
          for (size_t same = 0; same < inputs; same++) {
            for (size_t count = 0; count <= kCount; count += count < 70 ? 1 : 23) {
              for (const Store store : {Store::cached, Store::streaming}) {
                std::vector<char> to = c.from[same];
                std::vector<const void*> pointers = c.pointers();
                pointers[same] = to.data();
                reduce(type, op, to.data(), pointers, count, store);
                ASSERT_EQ(difference(c, to.data(), 0, count), "");
                const size_t end = count * size_of(type);
                ASSERT_EQ(std::memcmp(to.data() + end, c.from[same].data() + end, to.size() - end),
                          0);
              }
            }
          }
        });
      }
    }
  }
}

TEST_F(Kernels, NUM_09_MoreInputsThanAreReadSideBySide) {
  constexpr size_t kCount = 5000;
  for (const Type type : reference::all_types()) {
    for (const size_t inputs : {9u, 17u}) {
      const Case c(type, Op::sum, inputs, kCount, random_);
      on_all([&] {
        for (const size_t count : {kCount, size_t{4097}, size_t{1024}, size_t{513}}) {
          for (const size_t same : {size_t{0}, size_t{7}, size_t{8}, inputs - 1, inputs}) {
            for (const Store store : {Store::cached, Store::streaming}) {
              std::vector<const void*> pointers = c.pointers();
              std::vector<char> to = c.from[same % inputs];  // `inputs`: beside all of them
              if (same < inputs) pointers[same] = to.data();
              reduce(type, Op::sum, to.data(), pointers, count, store);
              ASSERT_EQ(difference(c, to.data(), 0, count), "");
            }
          }
        }
      });
    }
  }
}

TEST_F(Kernels, AllInputsMayBeOneAndTheOutput) {
  std::vector<float> values = {1.5f, -2.0f, 3.25f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f};
  const std::vector<float> before = values;
  reduce2(Type::float32, Op::sum, values.data(), values.data(), values.data(), values.size());
  for (size_t i = 0; i < values.size(); i++) EXPECT_EQ(values[i], 2 * before[i]);
}

// Pages that may be used, between two that may not.
class Guarded {
 public:
  Guarded() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* const memory = mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail_system(errno, "map three pages");
    base_ = static_cast<char*>(memory);
    if (mprotect(begin(), page_, PROT_READ | PROT_WRITE) != 0) fail_system(errno, "open a page");
  }
  ~Guarded() { munmap(base_, 3 * page_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  char* begin() { return base_ + page_; }
  char* last(size_t bytes) { return begin() + page_ - bytes; }

 private:
  size_t page_;
  char* base_;
};

TEST_F(Kernels, NothingBesideTheElementsIsTouched) {
  Guarded a, b, c, to;
  for (const Type type : reference::all_types()) {
    const char one[8] = {1};
    on_all([&] {
      for (size_t count = 0; count <= 300; count += count < 70 ? 1 : 46) {
        const size_t bytes = count * size_of(type);
        for (const bool at_end : {false, true}) {
          const auto place = [&](Guarded& pages) {
            return at_end ? pages.last(bytes) : pages.begin();
          };
          const void* const inputs[] = {place(a), place(b), place(c)};
          for (const Store store : {Store::cached, Store::streaming}) {
            for (const Op op : {Op::sum, Op::max, Op::min, Op::prod}) {
              reduce(type, op, place(to), inputs, count, store);
              reduce2(type, op, place(to), place(a), place(b), count, store);
            }
            copy_bytes(place(to), place(a), bytes, store);
          }
          finish_avg(type, place(to), place(a), count, 3);
          scale(type, place(to), place(a), one, count);
        }
      }
    });
  }
}

TEST_F(Kernels, CopyIsExactWithEitherStore) {
  std::vector<char> from(40'000);
  for (char& byte : from) byte = static_cast<char>(random_());
  on_all([&] {
    for (int round = 0; round < 300; round++) {
      const size_t at = random_() % 100, shift = random_() % 130;
      const size_t bytes = round < 200 ? random_() % 300 : random_() % (from.size() - at);
      for (const Store store : {Store::cached, Store::streaming}) {
        std::vector<char> to(bytes + 200, kCanary);
        copy_bytes(to.data() + shift, from.data() + at, bytes, store);
        ASSERT_EQ(std::memcmp(to.data() + shift, from.data() + at, bytes), 0);
        ASSERT_TRUE(untouched(to, shift, shift + bytes));
      }
    }
  });
}

TEST_F(Kernels, AverageAndScaleGiveTheReference) {
  constexpr size_t kCount = 333;
  for (const Type type : reference::all_types()) {
    const Elements elements = reference::random_elements(type, kCount, random_);
    const std::vector<char> from = reference::packed(type, elements);
    for (const unsigned ranks :
         {1u, 2u, 3u, 7u, 8u, 200u, 255u, 256u, 1000u, 65'537u, 4'000'000'000u}) {
      const Bits factor = reference::random_elements(type, 2, random_)[ranks % 2];
      on_all([&] {
        for (size_t count = 0; count <= kCount; count += count < 70 ? 1 : 263) {
          std::vector<char> average(count * size_of(type)), product = average;
          finish_avg(type, average.data(), from.data(), count, ranks);
          scale(type, product.data(), from.data(), &factor, count);
          for (size_t i = 0; i < count; i++) {
            ASSERT_EQ(reference::get(type, average.data(), i),
                      reference::divided(type, elements[i], ranks))
                << name(type) << " " << elements[i] << " / " << ranks;
            ASSERT_EQ(reference::get(type, product.data(), i),
                      reference::scaled(type, elements[i], factor))
                << name(type) << " " << elements[i] << " * " << factor;
          }
          std::vector<char> in_place = from;
          finish_avg(type, in_place.data(), in_place.data(), count, ranks);
          ASSERT_TRUE(std::equal(average.begin(), average.end(), in_place.begin()));
        }
      });
    }
  }
}

TEST_F(Kernels, SelectionKnowsWhatTheProcessorHas) {
  const std::vector<std::string> here = reference::kernels_here();
  ASSERT_FALSE(here.empty());
  EXPECT_EQ(here[0], "scalar");
  select_kernels("");
  EXPECT_EQ(kernels_in_force(), here.back());
  for (const std::string& kernels : here) {
    select_kernels(kernels);
    EXPECT_EQ(kernels_in_force(), kernels);
  }
  try {
    select_kernels("sse9");
    FAIL() << "sse9 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(error.text().find("sse9"), std::string::npos);
  }
  EXPECT_EQ(kernels_in_force(), here.back());
}

TEST_F(Kernels, WhatCannotBeReducedAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float value = 1;
  EXPECT_DEATH(reduce2(Type::float32, Op::band, &value, &value, &value, 1), "band");
  EXPECT_DEATH(reduce(Type::float32, Op::sum, &value, {}, 1), "without an input");
}

}  // namespace
}  // namespace hcomm
