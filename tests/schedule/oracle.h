// SPDX-License-Identifier: Apache-2.0
// A second opinion on schedules: runs them, event by event, in random legal orders over symbolic
// memory, and looks at what happens. Shares nothing with the checker. What no run shows may still
// be wrong; what one run shows is wrong. At most kRanks ranks, no varied shapes.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::schedule {

class Oracle {
 public:
  static constexpr uint32_t kRanks = 16;

  explicit Oracle(std::span<const Schedule> all);
  // What went wrong in `runs` runs, "" when nothing did.
  std::string judge(uint64_t seed, int runs);

 private:
  struct Value {
    uint64_t tree = 0;  // 0: nothing was ever written; odd marks: being written
    uint32_t block = 0, part = 0;
    std::array<uint8_t, kRanks> counts{};  // contributions
    bool operator==(const Value&) const = default;
  };
  struct Cell {
    uint32_t rank, index;
  };
  enum class What : uint8_t { enter, start, end };
  struct Event {
    double at;
    What what;
    uint32_t rank, step;
    bool operator<(const Event& other) const { return at > other.at; }
  };
  struct State {
    uint32_t needs = 0, open = 0;
    bool due = false, started = false, done = false;
    std::vector<Value> read;  // snapshot of the sources at the start
  };
  struct Channel {
    std::vector<uint32_t> sends, receives;  // steps, in order
    uint32_t sent = 0, posted = 0;
  };

  bool fits() const;
  bool fits(const Schedule& schedule, const Step& step) const;
  bool in_range(const Schedule& schedule, Slice slice) const;
  void reset();
  void run();
  void happen(const Event& event);
  void plan(What what, uint32_t rank, uint32_t step);
  void consider(uint32_t rank, uint32_t step);
  void start(uint32_t rank, uint32_t step);
  void end(uint32_t rank, uint32_t step);
  void end_recv(uint32_t rank, uint32_t step);
  void finish(uint32_t rank, uint32_t step);
  void write(uint32_t rank, uint32_t step, const std::vector<Value>& values);
  void check_results();
  void check_result(uint32_t rank, uint32_t block, uint32_t part);
  void wrong(std::string text) {
    if (wrong_.empty()) wrong_ = std::move(text);
  }

  std::vector<Value> sources(uint32_t rank, uint32_t step) const;
  Value& cell(uint32_t rank, Slice slice, uint32_t i);
  const Value& cell(uint32_t rank, Slice slice, uint32_t i) const;
  Slice mirrored(uint32_t rank, Slice slice, uint32_t i) const;
  Channel& channel(uint32_t from, uint32_t to) { return channels_[from * ranks_ + to]; }
  const Step& step(uint32_t rank, uint32_t index) const { return all_[rank].steps[index]; }
  bool complete(const Value& value) const;
  static Value joined(const Value& a, const Value& b);
  Value leaf(uint32_t rank, uint32_t block, uint32_t part) const;

  std::span<const Schedule> all_;
  const uint32_t ranks_, parts_;
  std::mt19937_64 random_;
  bool buffered_ = false;         // sends are done before their receives
  std::vector<double> slowness_;  // of each rank
  double lag_chance_ = 0;
  std::priority_queue<Event> events_;
  double now_ = 0;
  std::vector<std::array<std::vector<Value>, 3>> memory_;
  std::vector<std::vector<State>> states_;
  std::vector<Channel> channels_;
  std::vector<bool> entered_;
  std::vector<size_t> left_;
  std::string wrong_;
};

}  // namespace hcomm::schedule
