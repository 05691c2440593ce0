// SPDX-License-Identifier: Apache-2.0
// What is reported: one Row for each operation and size, the facts of the run, the summary. Plain
// values, made by the runs, read by the writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hcomm::bench {

enum class Checked : uint8_t { no, ok, wrong };

// Rows that belong together: one line of a sweep's title.
struct Series {
  std::string operation, type, redop, root, place;  // "" where it has none; place: out, in
  int ranks = 1;
  bool operator==(const Series&) const = default;
};
std::string title_text(const Series& series);  // "allreduce float32 sum, out of place, 8 ranks"

struct Row {
  Series series;
  size_t bytes = 0;      // as nccl-tests counts
  size_t requested = 0;  // as --sizes says
  size_t count = 0;      // elements, the argument of the call
  size_t n = 0;          // samples
  int64_t batch = 1;     // operations of a sample
  double min_us = 0, p50_us = 0, cv = 0, noise = 0;
  std::optional<double> p99_us, algbw, busbw;  // GB/s, 1e9
  std::optional<double> peak;                  // that busbw cannot exceed, bytes/s; see peak.h
  bool settled = true;
  Checked checked = Checked::no;
  uint64_t wrong = 0;
  std::string algorithm;
  std::string time;              // UTC, where asked for
  std::vector<double> times_us;  // every sample
};

struct Facts {
  std::string tool, library, time, kernel, processor, governor;
  int ranks = 1, hosts = 1, cores = 1;
  std::string hosts_text;
  double init_ms = 0, memory_mib = 0;
  std::string check, memory;
  std::string peaks;                     // where the peaks of the rows are from, "": no --peak
  std::vector<std::string> environment;  // HCOMM_*, without secrets
  std::optional<double> busy;            // share of the cores before the run, by other programs
};

// "hcc-bench 0.1.0, libhcomm-core 0.1.0; 8 ranks on 2 hosts (n01:4 n02:4), 2 cores here"
std::string facts_line(const Facts& facts);

// A sweep in three numbers, never one average over all sizes.
struct Regimes {
  std::optional<double> latency_us;  // the least p50 of 1 B to 4 KiB
  std::optional<size_t> crossover;   // the size from which busbw is at least half of its best
  std::optional<double> busbw;       // the best from 4 MiB on
  std::optional<double> peak_share;  // busbw of that row by its peak
};
// busbw by its peak.
std::optional<double> peak_share(const Row& row);

Regimes regimes(const std::vector<Row>& rows);  // of one series

}  // namespace hcomm::bench
