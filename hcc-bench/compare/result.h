// SPDX-License-Identifier: Apache-2.0
// What was measured, and what it says: turns of one state of the cores are paired and compared.
// Pure values; made by run.cpp, read by the writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hcc-bench/operation.h"

namespace hcomm::compare {

// Whether the cores of ranks 0 and 1 share a cache; mixed: it changed during the measurement.
enum class State : uint8_t { near, far, unknown, mixed };
std::string_view name(State state);                 // "near", "far", "-", "mixed"
State state_of(double before_ns, double after_ns);  // less than 0: it could not be told

struct Measurement {
  double min_us = 0, median_us = 0, p99_us = 0;
  int64_t batches = 0, batch = 0, errors = 0;
  double before_ns = -1, after_ns = -1;  // core distance
  State state() const { return state_of(before_ns, after_ns); }
};

struct Turn {
  int round = 0;
  Measurement measured;
};

inline constexpr std::string_view kUnsupported = "unsupported";

// One library in one cell.
struct Series {
  std::string subject, version;
  std::vector<Turn> turns;
  std::string error;  // why there are no more turns; kUnsupported: it has no such operation
  bool wrong() const;
};

struct Cell {
  std::string transport;
  bench::Operation operation = bench::Operation::all_reduce;
  int ranks = 0;
  size_t bytes = 0;            // as nccl-tests counts; 0: a barrier
  std::vector<Series> series;  // HCOMM first
};

// A library's turns of one state as one.
struct Figure {
  double min_us = 0, median_us = 0, p99_us = 0;  // least minimum; medians of the turns'
  size_t turns = 0;
};
std::optional<Figure> figure(const Series& series, State state);

struct Interval {
  double low = 0, high = 0;
};
// 95 % interval of the geometric mean of the ratios, taken as log-normal. Nothing below two.
std::optional<Interval> interval(std::span<const double> ratios);

// Ours over a peer's: less than 1 is faster. The interval is that of the rounds' minima.
struct Ratio {
  double min = 0, median = 0;
  std::optional<Interval> sure;
  bool lost() const { return sure && sure->low > 1.05; }
};
std::optional<Ratio> ratio(const Series& ours, const Series& peer, State state);

// A row of the table: a cell in one state. `peer`: the index of the best one, 0: none.
struct Row {
  State state = State::unknown;
  std::optional<Figure> ours, best;
  size_t peer = 0;
  std::optional<Ratio> ratio;
};
std::vector<Row> rows_of(const Cell& cell);

struct Summary {
  std::string transport;
  double mean = 0;  // geometric, of the rows' ratios of minima
  size_t rows = 0, lost = 0;
  std::string worst;  // "alltoall 4 ranks 1KiB near: 1.21 (openmpi)"
};
std::vector<Summary> summaries(std::span<const Cell> cells);

std::string cell_text(const Cell& cell);  // "alltoall 4 ranks 1KiB"

}  // namespace hcomm::compare
