// SPDX-License-Identifier: Apache-2.0
// Jobs of real ranks, and the numbers that they keep for one another.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/shell.h"

namespace hcomm::test {
namespace {

// A job of two ranks that join; "NAME=VALUE ..." over an environment without a cache.
std::string job(const std::string& environment) {
  return fmt::format(
      "env -u XDG_CACHE_HOME -u HOME HCOMM_CALIBRATION=cache {} '{}' -n 2 --label none '{}' "
      "barrier "
      "--iters 1 --warmup 1 --csv",
      environment, HCC_LAUNCH, HCC_BENCH);
}

class CalibrationJobs : public testing::Test {
 protected:
  std::string in_cache() const { return "XDG_CACHE_HOME=" + folder_.path().string(); }
  std::string kept() const { return file_text(folder_.path() / "hcomm/calibration"); }
  // A measurement that the machine has disturbed is not kept: then another job measures.
  void keep() const {
    for (int i = 0; i < 50 && kept().empty(); i++) {
      const Ran ran = shell(job(in_cache()));
      ASSERT_EQ(ran.code, 0) << ran.output;
    }
    ASSERT_FALSE(kept().empty());
  }

  TemporaryFolder folder_;
};

TEST_F(CalibrationJobs, ALaterOneMeasuresNothing) {
  keep();
  const std::string first = kept();
  const Ran ran = shell(job(in_cache()));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(kept(), first);
}

TEST_F(CalibrationJobs, OneOfAnotherTransportAddsItsOwn) {
  keep();
  const auto lines = [&] {
    const std::string text = kept();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines();
  for (int i = 0; i < 50 && lines() == before; i++)
    ASSERT_EQ(shell(job(in_cache() + " HCOMM_TRANSPORT=tcp")).code, 0);
  EXPECT_EQ(lines(), before + 1);
}

TEST_F(CalibrationJobs, SeveralAtOnceAllRun) {
  std::string all, waits;
  for (int i = 0; i < 4; i++) {
    all += fmt::format("{} >/dev/null & p{}=$!; ", job(in_cache()), i);
    waits += fmt::format("{}wait $p{}", i == 0 ? "" : " && ", i);
  }
  const Ran ran = shell(all + waits);
  EXPECT_EQ(ran.code, 0) << ran.output;
  keep();
}

TEST_F(CalibrationJobs, WithoutACacheTheyMeasureAndSaySoOnlyWhenAsked) {
  for (const std::string& environment : {std::string(), std::string("XDG_CACHE_HOME=/proc/nothing"),
                                         fmt::format("HOME={}/none", folder_.path().string())}) {
    const Ran quiet = shell(job(environment)), asked = shell(job("HCOMM_LOG=debug " + environment));
    EXPECT_EQ(quiet.code, 0) << environment << quiet.output;
    EXPECT_FALSE(quiet.says("calibration")) << quiet.output;
    EXPECT_TRUE(asked.says("calibration is not kept")) << environment << asked.output;
  }
}

}  // namespace
}  // namespace hcomm::test
