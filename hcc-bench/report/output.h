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
#include "hcc-bench/report/writer.h"

namespace hcomm::bench {

class Output {
 public:
  Output(const Options& options, Facts facts);
  void row(const Row& row);
  void series_end(const std::vector<Row>& rows);
  // Ends the documents, once; later calls do nothing. From any thread, also while another one is
  // stuck in a write: then nothing is ended.
  void end(const Ending& ending);
  // Saves and compares as asked, after `end`. True: nothing is slower than allowed.
  bool settle_base();

 private:
  const Options& options_;
  Facts facts_;
  std::optional<Baseline> base_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Row> rows_;
  std::timed_mutex mutex_;
  bool ended_ = false;
};

}  // namespace hcomm::bench
