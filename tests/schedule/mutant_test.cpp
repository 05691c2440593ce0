// SPDX-License-Identifier: Apache-2.0
// Does the checker see what it should? Faults are put into every algorithm; those that a random run
// shows to be faults must be rejected.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "algorithm/algorithm.h"
#include "schedule/check.h"
#include "schedule/dump.h"
#include "schedule/mutants.h"
#include "schedule/oracle.h"

namespace hcomm::schedule {
namespace {

constexpr uint64_t kSeed = 20260131;
constexpr uint32_t kRankCounts[] = {2, 3, 5, 8};
constexpr int kTries = 8;  // mutants of an algorithm, rank count and kind
constexpr int kRunsRejected = 24, kRunsAccepted = 100;

struct Tally {
  size_t mutants = 0;
  size_t rejected = 0;    // and shown to be a fault by a run
  size_t unshown = 0;     // rejected, and no run showed why
  size_t equivalent = 0;  // accepted, and no run showed a fault
  size_t survived = 0;    // accepted, though a run shows a fault
};

class Hunt {
 public:
  void hunt(const algorithm::Algorithm& algorithm, uint32_t ranks);
  void print() const;
  Tally sum() const;

 private:
  void judge(const std::vector<Schedule>& all, uint32_t rank, const Mutation& mutation);

  std::mt19937_64 random_{kSeed};
  std::map<std::string_view, Tally> tallies_;
  std::vector<std::string> survivors_;
};

void Hunt::hunt(const algorithm::Algorithm& algorithm, uint32_t ranks) {
  Shape shape{.collective = algorithm.collective, .ranks = ranks};
  shape.in_place = random_() % 2 == 0;
  if (rooted(shape.collective)) shape.root = static_cast<uint32_t>(random_() % ranks);
  if (!algorithm.fits(shape)) return;
  const std::vector<Schedule> good = algorithm::build_all(algorithm, shape);
  ASSERT_TRUE(check(good).ok) << algorithm.name << check(good).finding;
  ASSERT_EQ(Oracle(good).judge(random_(), 10), "") << name(shape.collective) << algorithm.name;
  for (const Mutation& mutation : mutations())
    for (int i = 0; i < kTries; i++) {
      std::vector<Schedule> all = good;
      const auto one = static_cast<uint32_t>(random_() % ranks);
      const uint64_t seed = random_();
      const bool everywhere = i % 4 == 3;  // a slip in the text of the algorithm
      for (uint32_t rank = 0; rank < ranks; rank++) {
        std::mt19937_64 random(seed);
        if ((everywhere || rank == one) && !mutation.apply(all[rank], random))
          all[rank] = good[rank];
      }
      if (all != good) judge(all, one, mutation);
    }
}

void Hunt::judge(const std::vector<Schedule>& all, uint32_t rank, const Mutation& mutation) {
  Tally& tally = tallies_[mutation.name];
  tally.mutants++;
  const bool accepted = check(all).ok;
  const std::string fault = Oracle(all).judge(random_(), accepted ? kRunsAccepted : kRunsRejected);
  if (!accepted) {
    (fault.empty() ? tally.unshown : tally.rejected)++;
    return;
  }
  (fault.empty() ? tally.equivalent : tally.survived)++;
  if (!fault.empty())
    survivors_.push_back(
        fmt::format("{} at rank {}: {}\n{}", mutation.name, rank, fault, dump(all[rank])));
}

void Hunt::print() const {
  std::printf("seed %lu\n%-16s %8s %9s %8s %11s %9s\n", static_cast<unsigned long>(kSeed), "kind",
              "mutants", "rejected", "unshown", "equivalent", "survived");
  const auto line = [](std::string_view kind, const Tally& t) {
    std::printf("%-16s %8zu %9zu %8zu %11zu %9zu\n", std::string(kind).c_str(), t.mutants,
                t.rejected, t.unshown, t.equivalent, t.survived);
  };
  for (const auto& [kind, tally] : tallies_) line(kind, tally);
  line("all", sum());
  for (const std::string& survivor : survivors_) std::printf("survivor: %s", survivor.c_str());
}

Tally Hunt::sum() const {
  Tally sum;
  for (const auto& [kind, tally] : tallies_) {
    sum.mutants += tally.mutants;
    sum.rejected += tally.rejected;
    sum.unshown += tally.unshown;
    sum.equivalent += tally.equivalent;
    sum.survived += tally.survived;
  }
  return sum;
}

TEST(Mutants, FaultsAreRejected) {
  Hunt hunt;
  for (const algorithm::Algorithm& algorithm : algorithm::all())
    for (const uint32_t ranks : kRankCounts) hunt.hunt(algorithm, ranks);
  hunt.print();
  const Tally sum = hunt.sum();
  EXPECT_GT(sum.rejected, 5000u);
  EXPECT_LE(static_cast<double>(sum.survived),
            0.005 * static_cast<double>(sum.rejected + sum.survived));
}

}  // namespace
}  // namespace hcomm::schedule
