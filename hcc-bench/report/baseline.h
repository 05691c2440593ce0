// SPDX-License-Identifier: Apache-2.0
// --save and --compare: rows kept in a JSON file with their samples, and later rows held against
// them. A row has changed when its median differs by more than the limit and a rank test says that
// it is not chance.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hcc-bench/report/row.h"

namespace hcomm::bench {

// Throws system.
void save_rows(const std::string& path, const Facts& facts, const std::vector<Row>& rows);

struct Change {
  Row now;
  double base_p50_us;
  double ratio;        // now / base
  double probability;  // that it is chance
};

class Baseline {
 public:
  explicit Baseline(const std::string& path);  // throws invalid_argument: unreadable, not ours
  // Nothing: as before, or not in the base.
  std::optional<Change> compare(const Row& row, double limit) const;
  bool has(const Row& row) const;

 private:
  struct Kept {
    double p50_us;
    std::vector<double> times_us;
  };
  std::map<std::string, Kept> rows_;
};

// "what was changed" as a table; "" when nothing has.
std::string changes_text(const std::vector<Change>& changes);

}  // namespace hcomm::bench
