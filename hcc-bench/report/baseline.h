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

// The file of --save. It is made beside its place and takes it when it is whole, so that a good
// base is never lost to a run that failed.
class BaseFile {
 public:
  // Throws invalid_argument where `path` is no file, system where none can be made beside it.
  explicit BaseFile(const std::string& path);
  void save(const Facts& facts, const std::vector<Row>& rows) const;  // throws system

 private:
  std::string path_, part_;
};

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
  bool has(const Row& row) const;  // and it can be compared
  size_t size() const { return rows_.size(); }

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
