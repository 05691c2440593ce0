// SPDX-License-Identifier: Apache-2.0
// The training example: ranks share the work and reach the same network; deterministic runs give
// the same bits; what is wrong is said.
#include <gtest/gtest.h>

#include "examples/train_run.h"

namespace hcomm::test {
namespace {

TEST(Train, RanksReachTheSameAccuracy) {
  const std::string options = "--epochs 1 --limit 3000 --batch 64";
  const Ran alone = train(1, options);
  ASSERT_EQ(alone.code, 0) << alone.output;
  const auto [loss, accuracy, images_per_s, communication] = epoch_of(alone, 1);
  EXPECT_GT(accuracy, 65);
  EXPECT_GT(images_per_s, 0);
  EXPECT_GE(communication, 0);
  EXPECT_LT(communication, 100);
  for (const int ranks : {2, 3}) {
    const Ran shared = train(ranks, options);
    ASSERT_EQ(shared.code, 0) << shared.output;
    EXPECT_NEAR(epoch_of(shared, 1).loss, loss, 0.01) << ranks << " ranks";
    EXPECT_NEAR(epoch_of(shared, 1).accuracy, accuracy, 0.5) << ranks << " ranks";
  }
}

TEST(Train, DeterministicRunsGiveTheSameBits) {
  const std::string options = "--epochs 1 --limit 500 --deterministic";
  const Ran first = train(2, options), second = train(2, options);
  ASSERT_EQ(first.code, 0) << first.output;
  const std::string hash = last_word(first.output, "weights ");
  EXPECT_EQ(hash.size(), 16U) << first.output;
  EXPECT_EQ(last_word(second.output, "weights "), hash);
  EXPECT_NE(last_word(train(2, options + " --seed 2").output, "weights "), hash);
}

// Each sum is of the same gradients in the same order, whatever it travels with.
TEST(Train, BucketsDoNotChangeTheBits) {
  const std::string options = "--epochs 1 --limit 300 --batch 60 --hidden 40,24 --deterministic";
  const Ran whole = train(3, options + " --bucket 0");
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_TRUE(whole.says("784-40-24-10 on 300 images, 3 ranks over HCOMM")) << whole.output;
  for (const char* bucket : {"1K", "10000", "64K"}) {
    const Ran ran = train(3, options + " --bucket " + bucket);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_EQ(last_word(ran.output, "weights "), last_word(whole.output, "weights ")) << bucket;
  }
}

TEST(Train, MeasuringAStepLeavesTheWeights) {
  const std::string options = "--epochs 1 --limit 300 --hidden 32 --bucket 8K --deterministic";
  const Ran plain = train(2, options), measured = train(2, options + " --exposed 1");
  ASSERT_EQ(measured.code, 0) << measured.output;
  EXPECT_NE(last_word(measured.output, "without communication "), "") << measured.output;
  EXPECT_EQ(last_word(measured.output, "weights "), last_word(plain.output, "weights "));
}

#ifdef MPIRUN
TEST(Train, MpiReachesTheSameAccuracy) {
  const std::string options = "--epochs 1 --limit 600 --batch 64 --hidden 32 --bucket 8K";
  const Ran by_mpi = shell(
      fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 '{}' -n 2 '{}' {}",
                  MPIRUN, TRAIN_MPI, options));
  ASSERT_EQ(by_mpi.code, 0) << by_mpi.output;
  EXPECT_TRUE(by_mpi.says("2 ranks over MPI")) << by_mpi.output;
  EXPECT_NEAR(epoch_of(by_mpi, 1).loss, epoch_of(train(2, options), 1).loss, 0.01);
}
#endif

TEST(Train, MoreRanksThanImagesOfABatch) {
  const Ran ran = train(3, "--epochs 1 --limit 10 --batch 2");
  EXPECT_EQ(ran.code, 0) << ran.output;
}

TEST(Train, SaysWhatIsMissing) {
  const Ran ran = train(1, "--data /nonexistent");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(
      ran.says("/nonexistent/train-images-idx3-ubyte.gz cannot be opened; install the "
               "package dataset-fashion-mnist"))
      << ran.output;
}

TEST(Train, DamagedDataIsSaid) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte.gz", "not gzip, not IDX");
  folder.write("train-labels-idx1-ubyte.gz", "");
  const Ran ran = train(1, "--data " + folder.path().string());
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.says("train-images-idx3-ubyte.gz is not an IDX file")) << ran.output;
}

TEST(Train, RefusesOptionsThatItDoesNotKnow) {
  EXPECT_EQ(train(1, "--bogus").code, 2);
  EXPECT_EQ(train(1, "--epochs -1").code, 2);
  EXPECT_EQ(train(1, "--hidden 0").code, 2);
  EXPECT_EQ(train(1, "--bucket 100").code, 2);
  EXPECT_EQ(train(1, "--help").code, 0);
}

}  // namespace
}  // namespace hcomm::test
