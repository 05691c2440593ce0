// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include "schedule/check_parts.h"

namespace hcomm::schedule {

Report check(std::span<const Schedule> all, const CheckOptions& options) {
  Report report;
  for (const Schedule& schedule : all) report.steps += schedule.steps.size();
  try {
    const Whole whole(all);
    const std::vector<uint32_t> order = order_of(whole, options.credits, options.tiles);
    check_races(whole);
    if (whole.shape().collective == Collective::barrier)
      check_barrier(whole, order);
    else
      check_meaning(whole, order);
  } catch (const Fault& found) {
    report.ok = false;
    report.finding = found.text;
  }
  return report;
}

}  // namespace hcomm::schedule
