// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace hcomm::compare {

namespace {

// Between one cache and two there is a factor of four; no machine is in between.
constexpr double kNearNs = 80;

// Student's t, two-sided 95 %, by degrees of freedom.
double student(size_t freedom) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                               2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
                               2.093,  2.086, 2.080, 2.074, 2.069, 2.064, 2.060};
  return freedom <= std::size(kTable) ? kTable[freedom - 1] : 1.96 + 2.4 / double(freedom);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool usable(const Series& series) {
  return !series.wrong() && !series.turns.empty();
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::near:
      return "near";
    case State::far:
      return "far";
    case State::unknown:
      return "-";
    case State::mixed:
      return "mixed";
  }
  return "";
}

State state_of(double before_ns, double after_ns) {
  if (before_ns < 0 || after_ns < 0) return State::unknown;
  const bool near_before = before_ns < kNearNs, near_after = after_ns < kNearNs;
  if (near_before != near_after) return State::mixed;
  return near_before ? State::near : State::far;
}

bool Series::wrong() const {
  return std::any_of(turns.begin(), turns.end(),
                     [](const Turn& turn) { return turn.measured.errors != 0; });
}

std::optional<Figure> figure(const Series& series, State state) {
  Figure figure;
  std::vector<double> medians, highs;
  for (const Turn& turn : series.turns) {
    if (turn.measured.state() != state) continue;
    const Measurement& m = turn.measured;
    figure.min_us = medians.empty() ? m.min_us : std::min(figure.min_us, m.min_us);
    medians.push_back(m.median_us);
    highs.push_back(m.p99_us);
  }
  if (medians.empty()) return std::nullopt;
  figure.turns = medians.size();
  figure.median_us = median_of(medians);
  figure.p99_us = median_of(highs);
  return figure;
}

std::optional<Interval> interval(std::span<const double> ratios) {
  const size_t n = ratios.size();
  if (n < 2) return std::nullopt;
  double sum = 0, squares = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  const double mean = sum / static_cast<double>(n);
  for (const double ratio : ratios) squares += std::pow(std::log(ratio) - mean, 2);
  const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
  const double half = student(n - 1) * deviation / std::sqrt(static_cast<double>(n));
  return Interval{std::exp(mean - half), std::exp(mean + half)};
}

std::optional<Ratio> ratio(const Series& ours, const Series& peer, State state) {
  const std::optional<Figure> a = figure(ours, state), b = figure(peer, state);
  if (!a || !b || b->min_us <= 0 || b->median_us <= 0) return std::nullopt;
  std::vector<double> paired;
  for (const Turn& turn : ours.turns)
    for (const Turn& other : peer.turns)
      if (turn.round == other.round && turn.measured.state() == state &&
          other.measured.state() == state && other.measured.min_us > 0)
        paired.push_back(turn.measured.min_us / other.measured.min_us);
  return Ratio{a->min_us / b->min_us, a->median_us / b->median_us, interval(paired)};
}

std::vector<Row> rows_of(const Cell& cell) {
  std::vector<Row> rows;
  for (const State state : {State::near, State::far, State::unknown}) {
    Row row;
    row.state = state;
    for (size_t i = 0; i < cell.series.size(); i++) {
      if (!usable(cell.series[i])) continue;
      const std::optional<Figure> seen = figure(cell.series[i], state);
      if (i == 0)
        row.ours = seen;
      else if (seen && (!row.best || seen->min_us < row.best->min_us)) {
        row.best = seen;
        row.peer = i;
      }
    }
    if (!row.ours && !row.best) continue;
    if (row.ours && row.best) row.ratio = ratio(cell.series[0], cell.series[row.peer], state);
    rows.push_back(row);
  }
  // A state that the cores were in for a moment, when only one side was there, says nothing.
  const auto compared = [](const Row& row) { return row.ratio.has_value(); };
  if (std::any_of(rows.begin(), rows.end(), compared))
    std::erase_if(rows, [&](const Row& row) { return !compared(row); });
  return rows;
}

std::vector<Summary> summaries(std::span<const Cell> cells) {
  std::vector<Summary> list;
  std::vector<double> worst;
  for (const Cell& cell : cells) {
    auto at = std::find_if(list.begin(), list.end(),
                           [&](const Summary& each) { return each.transport == cell.transport; });
    if (at == list.end()) {
      list.push_back({.transport = cell.transport});
      worst.push_back(0);
      at = list.end() - 1;
    }
    double& most = worst[static_cast<size_t>(at - list.begin())];
    for (const Row& row : rows_of(cell)) {
      if (!row.ratio) continue;
      at->rows++;
      at->mean += std::log(row.ratio->min);
      at->lost += row.ratio->lost() ? 1 : 0;
      if (row.ratio->min <= most) continue;
      most = row.ratio->min;
      at->worst = fmt::format("{} {}: {:.2f} ({})", cell_text(cell), name(row.state), most,
                              cell.series[row.peer].subject);
    }
  }
  for (Summary& each : list)
    if (each.rows > 0) each.mean = std::exp(each.mean / static_cast<double>(each.rows));
  return list;
}

std::string cell_text(const Cell& cell) {
  std::string text = fmt::format("{} {} ranks", bench::info(cell.operation).name, cell.ranks);
  if (cell.bytes > 0) text += " " + size_text(cell.bytes);
  return text;
}

}  // namespace hcomm::compare
