// SPDX-License-Identifier: Apache-2.0
// All that rank 0 writes: the writers that the command line asks for, closed in every case, and the
// comparison with a base.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hcc-bench/options.h"
#include "hcc-bench/report/baseline.h"
#include "hcc-bench/report/peak.h"
#include "hcc-bench/report/writer.h"

namespace hcomm::bench {

// What --fail-if-slower says. Undecided: no row could be compared.
enum class Gate : uint8_t { holds, slower, undecided };

class Output {
 public:
  Output(const Options& options, Facts facts);
  void row(const Row& row);
  void series_end(const std::vector<Row>& rows);
  // Ends the documents, once; later calls do nothing. `reason`: why the run is not complete, or "".
  // From any thread, also while another one is stuck in a write: then nothing is ended.
  void end(const std::string& reason);
  // The same where something has failed already: what fails here is told, no more.
  void give_up(const std::string& reason) noexcept;
  // Saves, when all was done and right, and compares, as asked, after `end`.
  Gate settle_base();

 private:
  Gate compare() const;

  const Options& options_;
  Facts facts_;
  std::optional<Baseline> base_;
  std::optional<BaseFile> save_;
  std::optional<Peaks> peaks_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Row> rows_;
  std::timed_mutex mutex_;
  bool ended_ = false, complete_ = false;
  uint64_t wrong_ = 0;  // elements of all rows
};

}  // namespace hcomm::bench
