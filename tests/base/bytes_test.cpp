// SPDX-License-Identifier: Apache-2.0
// Sizes and times as people write them.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hcomm {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.text();
  }
  return "";
}

TEST(Bytes, SizesAsPeopleWriteThem) {
  const struct {
    const char* text;
    size_t bytes;
  } kTable[] = {{"0", 0},
                {"512", 512},
                {"1B", 1},
                {"64K", 65'536},
                {"64k", 65'536},
                {"1.5MiB", 1572864},
                {"10MB", 10'000'000},
                {"1kB", 1000},
                {"2G", 2 * kGiB},
                {"1Ki", 1024},
                {"1T", 1024 * kGiB}};
  for (const auto& row : kTable) EXPECT_EQ(parse_size(row.text), row.bytes) << row.text;
}

TEST(Bytes, SizesThatAreRefusedAreQuoted) {
  for (const std::string text : {"", "K", "-1", "1X", "1 K", "0.3", "nan", "inf", "1e30"}) {
    const std::string told = refusal([&] { parse_size(text); });
    EXPECT_NE(told.find("'" + text + "'"), std::string::npos) << text << ": " << told;
  }
}

TEST(Bytes, TimesAsPeopleWriteThem) {
  const struct {
    const char* text;
    int64_t ns;
  } kTable[] = {{"30", 30'000'000'000},
                {"250ms", 250'000'000},
                {"1.5s", 1'500'000'000},
                {"2m", 120'000'000'000},
                {"2min", 120'000'000'000},
                {"7us", 7'000},
                {"9ns", 9},
                {"1h", 3'600'000'000'000},
                {"0", 0}};
  for (const auto& row : kTable) EXPECT_EQ(parse_duration_ns(row.text), row.ns) << row.text;
  for (const char* text : {"", "s", "-1s", "10000000h", "5 s"})
    EXPECT_NE(refusal([&] { parse_duration_ns(text); }), "") << text;
}

TEST(Bytes, AnUnknownUnitNamesAllThereAre) {
  const std::string told = refusal([] { parse_duration_ns("1d"); });
  EXPECT_NE(told.find("use ns, us, ms, s, m or h"), std::string::npos) << told;
}

TEST(Bytes, TextIsExact) {
  EXPECT_EQ(size_text(0), "0B");
  EXPECT_EQ(size_text(1000), "1000B");
  EXPECT_EQ(size_text(1536), "1536B");
  EXPECT_EQ(size_text(65'536), "64KiB");
  EXPECT_EQ(size_text(kGiB), "1GiB");
  for (size_t bytes = 1; bytes < kGiB; bytes = bytes * 3 + 1)
    EXPECT_EQ(parse_size(size_text(bytes)), bytes);
}

TEST(Bytes, NearestIsNearOrNothing) {
  const std::string_view known[] = {"allreduce", "allgather", "barrier"};
  EXPECT_EQ(nearest("alreduce", known, 3), "allreduce");
  EXPECT_EQ(nearest("barier", known, 3), "barrier");
  EXPECT_EQ(nearest("something else", known, 3), "");
  EXPECT_EQ(nearest("x", known, 0), "");
}

}  // namespace
}  // namespace hcomm
