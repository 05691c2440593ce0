// SPDX-License-Identifier: Apache-2.0
// What a sweep over algorithms measured, and whether the choice was good: HCOMM's own choice beside
// plans that were forced, all of one job, in turn. Pure values; made by match.cpp, read by the
// writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hcc-bench/measure/statistics.h"
#include "hcc-bench/report/row.h"

namespace hcomm::choice {

struct Rival {
  std::string algorithm;         // that was forced; "": the choice
  std::string actions;           // of the rule that forced it
  std::string plan;              // that ran: "ring tile=512KiB window=4 shm"
  std::vector<double> turns_us;  // the median of each turn; equally many of all rivals
  uint64_t wrong = 0;            // elements, over all ranks
};

// One operation of one size. rivals[0] is the choice.
struct Cell {
  bench::Series series;
  size_t bytes = 0;
  std::vector<Rival> rivals;
};
uint64_t wrong(const Cell& cell);  // elements of all rivals

// best: the plan that was chosen is the best of the forced ones; ok: within 5 % of it; noise: more,
// but not surely, or too few turns to tell; worse: surely more.
enum class Verdict : uint8_t { best, ok, noise, worse };
std::string_view name(Verdict verdict);

inline constexpr double kTolerance = 1.05;  // of the choice's time to the best one's
inline constexpr double kOutlier = 1.15;    // that no cell may surely exceed
inline constexpr double kShare = 0.95;      // of the cells that must be within the tolerance
// Below it the interval of a median is all that was seen, and less sure than 95 %.
inline constexpr size_t kLeastTurns = 6;

double time_us(const Rival& rival);  // the median of its turns

// One rival's time by another's: the median of the ratios of turns of one round, and its interval.
struct Ratio {
  double value = 0;
  bench::Interval sure;  // 95 %
  size_t turns = 0;
};
std::optional<Ratio> ratio(const Rival& of, const Rival& by);

struct Judgement {
  size_t best = 0;  // rival
  Ratio ratio;      // the choice by it
  Verdict verdict = Verdict::best;
};
// Nothing where nobody could be forced, or nothing was measured.
std::optional<Judgement> judge(const Cell& cell);

struct Tally {
  size_t cells = 0, good = 0, outliers = 0;
  double worst = 0;         // the largest ratio of two plans
  std::string worst_where;  // "allreduce 64KiB (noise)"; "": the choice was the best everywhere
  bool reached() const;
  // "choice within 5 % of the best or within noise in 19 of 20 cells (95 %), worst 1.08 at ..."
  std::string text() const;
};
Tally tally(std::span<const Cell> cells);

}  // namespace hcomm::choice
