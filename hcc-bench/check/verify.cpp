// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/check/verify.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "datatype/kernels.h"

namespace hcomm::bench {

namespace {

using enum Operation;

constexpr unsigned char kUntouched = 0xa5;
constexpr int kResult = -1;        // a segment that holds the reduction
constexpr size_t kWitnesses = 16;  // elements that a guess must explain

// A run of expected elements: those of rank `source` (or of the result) from `first` on.
struct Segment {
  size_t at, count;
  int source;
  size_t first;
};

std::vector<Segment> segments(const Task& task) {
  const Layout& l = task.layout;
  const auto n = static_cast<size_t>(task.place.ranks), me = static_cast<size_t>(task.place.rank);
  const int root = task.place.root, rank = task.place.rank, ranks = task.place.ranks;
  if (l.recv == 0) return {};
  const auto block = [&](size_t i) { return l.counts.empty() ? l.count : l.counts[i]; };
  const auto start = [&](size_t i) {
    return l.displacements.empty() ? i * l.count : l.displacements[i];
  };
  std::vector<Segment> list;
  switch (task.operation) {
    case all_reduce:
    case reduce:
      return {{0, l.recv, kResult, 0}};
    case broadcast:
      return {{0, l.recv, root, 0}};
    case reduce_scatter:
    case reduce_scatter_v:
      return {{0, l.recv, kResult, start(me)}};
    case scatter:
    case scatter_v:
      return {{0, l.recv, root, start(me)}};
    case send_recv:
      return {{0, l.recv, (rank + ranks - 1) % ranks, 0}};
    case ping_pong:
      if (rank < 2) list.push_back({0, l.recv, 1 - rank, 0});
      return list;
    default:
      break;
  }
  for (size_t i = 0; i < n; i++) {
    size_t first = 0;
    if (task.operation == all_to_all) first = me * l.count;
    if (task.operation == all_to_all_v) {  // where block `me` lies in rank i's input
      const Layout theirs = layout(all_to_all_v, l.elements, 1, {static_cast<int>(i), ranks, root});
      first = theirs.displacements[me];
    }
    list.push_back({start(i), block(i), static_cast<int>(i), first});
  }
  return list;
}

// What a wrong element may be; each candidate must explain all witnesses.
class Guess {
 public:
  Guess(const Pattern& pattern, const Segment& segment)
      : pattern_(pattern), before_(pattern.before()), segment_(segment) {}

  void add(size_t element, double expected, double got, bool untouched) {
    if (count_ < kWitnesses) {
      elements_[count_] = element;
      expected_[count_] = expected;
      got_[count_++] = got;
    }
    untouched_ = untouched_ && untouched;
  }

  std::string text() const {
    if (untouched_) return " (never written)";
    if (all([&](size_t i) { return got_[i] == expected_of(before_, elements_[i]); }))
      return " (stale, from the previous iteration)";
    for (int rank = 0; rank < pattern_.ranks(); rank++) {
      if (segment_.source == kResult && sums(rank, -1))
        return fmt::format(" (looks like rank {}'s data missing)", rank);
      if (segment_.source == kResult && sums(rank, 1))
        return fmt::format(" (looks like rank {}'s data added twice)", rank);
      if (all([&](size_t i) { return got_[i] == pattern_.value(rank, position(i)); }))
        return fmt::format(" (looks like rank {}'s data)", rank);
    }
    return moved();
  }

 private:
  template <typename Test>
  bool all(Test test) const {
    for (size_t i = 0; i < count_; i++)
      if (!test(i)) return false;
    return count_ > 0;
  }
  double expected_of(const Pattern& pattern, size_t element) const {
    return segment_.source == kResult ? pattern.reduced(element)
                                      : pattern.value(segment_.source, element);
  }
  size_t position(size_t i) const { return elements_[i]; }
  bool sums(int rank, int sign) const {
    return all([&](size_t i) {
      const double theirs = pattern_.value(rank, position(i));
      return theirs != 0 && got_[i] == expected_[i] + sign * theirs;
    });
  }
  std::string moved() const {
    if (count_ < 4) return {};
    for (size_t by = 1; by < kPeriod; by++)
      if (all([&](size_t i) { return got_[i] == expected_of(pattern_, position(i) + by); }))
        return by < kPeriod / 2
                   ? fmt::format(" (looks like data {} elements too early)", by)
                   : fmt::format(" (looks like data {} elements too late)", kPeriod - by);
    return {};
  }

  const Pattern& pattern_;
  Pattern before_;
  Segment segment_;
  size_t count_ = 0;
  size_t elements_[kWitnesses] = {};
  double expected_[kWitnesses] = {}, got_[kWitnesses] = {};
  bool untouched_ = true;
};

bool is_untouched(const unsigned char* element, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (element[i] != kUntouched) return false;
  return true;
}

void check_segment(const Task& task, const Pattern& pattern, const Segment& segment,
                   Verdict& verdict) {
  const size_t bytes = size_of(pattern.type());
  const Values values =
      segment.source == kResult
          ? Values::of_result(pattern, segment.first, segment.count)
          : Values::of_rank(pattern, segment.source, segment.first, segment.count);
  const auto* data = static_cast<const unsigned char*>(task.recv) + segment.at * bytes;
  const double slack = segment.source == kResult ? pattern.tolerance() : 0;
  size_t i = values.first_difference(data, segment.count);
  Guess guess(pattern, segment);
  std::string first;
  uint64_t wrong = 0;
  for (; i < segment.count; i++) {
    const double expected = values.at(i), got = load_value(pattern.type(), data + i * bytes);
    if (std::fabs(got - expected) <= slack * std::fabs(expected)) continue;
    if (wrong++ == 0)
      first = fmt::format("element {}: expected {}, got {}", segment.at + i, expected, got);
    guess.add(segment.first + i, expected, got, is_untouched(data + i * bytes, bytes));
  }
  if (wrong > 0 && verdict.wrong == 0) verdict.text = first + guess.text();
  verdict.wrong += wrong;
}

}  // namespace

void prepare(const Task& task, const Pattern& pattern) {
  const size_t bytes = size_of(pattern.type());
  const Layout& l = task.layout;
  // Behind the input first: in place, the input may lie in the middle of the output.
  std::memset(task.recv, kUntouched, l.recv * bytes + kGuardBytes);
  if (task.in_place && l.send > l.recv)
    std::memset(static_cast<char*>(task.send) + l.send * bytes, kUntouched, kGuardBytes);
  if (l.send > 0) Values::of_rank(pattern, task.place.rank, 0, l.send).fill(task.send, l.send);
}

void spoil(const Task& task, Type type) {
  if (task.layout.recv == 0) return;
  // The highest byte of the last element: a change that no rounding explains.
  static_cast<unsigned char*>(task.recv)[task.layout.recv * size_of(type) - 1] ^= 0x40;
}

Verdict verify(const Task& task, const Pattern& pattern) {
  Verdict verdict;
  const size_t bytes = size_of(pattern.type());
  for (const Segment& segment : segments(task)) check_segment(task, pattern, segment, verdict);
  const Layout& l = task.layout;
  const bool idle = task.operation == ping_pong && task.place.rank > 1;
  const auto* behind = static_cast<const unsigned char*>(task.recv) + (idle ? 0 : l.recv * bytes);
  if (task.in_place && l.send > l.recv)  // the result lies within the input
    behind = static_cast<const unsigned char*>(task.send) + l.send * bytes;
  if (!is_untouched(behind, kGuardBytes) && verdict.wrong++ == 0)
    verdict.text = "bytes behind the result were written";
  if (task.in_place || l.send == 0) return verdict;
  const Values input = Values::of_rank(pattern, task.place.rank, 0, l.send);
  const size_t touched = input.first_difference(task.send, l.send);
  if (touched < l.send && verdict.wrong++ == 0)
    verdict.text = fmt::format("element {} of the input was written", touched);
  return verdict;
}

}  // namespace hcomm::bench
