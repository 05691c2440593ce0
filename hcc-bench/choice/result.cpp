// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace hcomm::choice {

uint64_t wrong(const Cell& cell) {
  uint64_t sum = 0;
  for (const Rival& rival : cell.rivals) sum += rival.wrong;
  return sum;
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::best:
      return "best";
    case Verdict::ok:
      return "ok";
    case Verdict::noise:
      return "noise";
    case Verdict::worse:
      return "worse";
  }
  return "";
}

double time_us(const Rival& rival) {
  return bench::statistics(rival.turns_us).median;
}

std::optional<Ratio> ratio(const Rival& of, const Rival& by) {
  std::vector<double> ratios;
  const size_t turns = std::min(of.turns_us.size(), by.turns_us.size());
  for (size_t i = 0; i < turns; i++)
    if (of.turns_us[i] > 0 && by.turns_us[i] > 0) ratios.push_back(of.turns_us[i] / by.turns_us[i]);
  if (ratios.empty()) return std::nullopt;
  return Ratio{bench::statistics(ratios).median, bench::median_interval(ratios), ratios.size()};
}

std::optional<Judgement> judge(const Cell& cell) {
  Judgement judgement;
  double least_us = 0;
  for (size_t i = 1; i < cell.rivals.size(); i++) {
    const double us = time_us(cell.rivals[i]);
    if (us <= 0 || (judgement.best > 0 && us >= least_us)) continue;
    judgement.best = i;
    least_us = us;
  }
  if (judgement.best == 0) return std::nullopt;
  const Rival &chosen = cell.rivals[0], &best = cell.rivals[judgement.best];
  const std::optional<Ratio> to = ratio(chosen, best);
  if (!to) return std::nullopt;
  judgement.ratio = *to;
  // Two communicators that run one plan differ by where their memory lies, not by the choice.
  if (chosen.plan == best.plan)
    judgement.verdict = Verdict::best;
  else if (to->value <= kTolerance)
    judgement.verdict = Verdict::ok;
  else
    judgement.verdict =
        to->turns >= kLeastTurns && to->sure.low > kTolerance ? Verdict::worse : Verdict::noise;
  return judgement;
}

bool Tally::reached() const {
  return outliers == 0 && static_cast<double>(good) >= kShare * static_cast<double>(cells);
}

std::string Tally::text() const {
  if (cells == 0) return "nothing was compared: no operation of these has algorithms to force";
  std::string text =
      fmt::format("choice within {:.0f} % of the best or within noise in {} of {} cells ({:.0f} %)",
                  (kTolerance - 1) * 100, good, cells,
                  100 * static_cast<double>(good) / static_cast<double>(cells));
  if (!worst_where.empty()) text += fmt::format(", worst {:.2f} at {}", worst, worst_where);
  return text;
}

Tally tally(std::span<const Cell> cells) {
  Tally tally;
  for (const Cell& cell : cells) {
    const std::optional<Judgement> judgement = judge(cell);
    if (!judgement) continue;
    tally.cells++;
    const bool worse = judgement->verdict == Verdict::worse;
    if (!worse) tally.good++;
    if (worse && judgement->ratio.value > kOutlier) tally.outliers++;
    if (judgement->verdict == Verdict::best || judgement->ratio.value <= tally.worst) continue;
    tally.worst = judgement->ratio.value;
    tally.worst_where = cell.series.operation;
    if (cell.bytes > 0) tally.worst_where += " " + size_text(cell.bytes);
    tally.worst_where += fmt::format(" ({})", name(judgement->verdict));
  }
  return tally;
}

}  // namespace hcomm::choice
