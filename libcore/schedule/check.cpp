// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include "schedule/check_whole.h"

namespace hcomm::schedule {

Report check(std::span<const Schedule> all, const CheckOptions& options) {
  Report report;
  for (const Schedule& schedule : all) report.steps += schedule.steps.size();
  try {
    const checking::Whole whole(all);
    const std::vector<uint32_t> order = checking::order_of(whole, options.credits, options.tiles);
    checking::check_races(whole);
    if (whole.shape().collective == Collective::barrier)
      checking::check_barrier(whole, order);
    else
      checking::check_meaning(whole, order);
  } catch (const checking::Fault& found) {
    report.ok = false;
    report.finding = found.text;
  }
  return report;
}

}  // namespace hcomm::schedule
