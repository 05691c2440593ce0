// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/compare/contest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace hcomm::compare {

namespace {

constexpr int kTries = 3;                    // of a turn during which the cores moved
constexpr double kStartS = 60;               // a launcher and a library on a busy machine
constexpr double kSlowestPerByteS = 100e-9;  // of one byte of one rank, over a whole turn

double limit_s(const Options& options, size_t bytes, int ranks) {
  return options.hang_s + 10 * options.budget_s +
         kSlowestPerByteS * static_cast<double>(bytes) * ranks;
}

}  // namespace

Contest::Contest(std::span<const Contender> contenders, std::string transport, int ranks,
                 const Options& options, const std::atomic<int>& stop)
    : transport_(std::move(transport)), ranks_(ranks), options_(options), stop_(stop) {
  const Job job{ranks, usable_cpus(), options.memory, std::max(kStartS, options.hang_s)};
  for (const Contender& each : contenders) {
    const std::vector<std::string>& known = each.subject.transports;
    if (std::find(known.begin(), known.end(), transport_) == known.end()) continue;
    Player player{.name = each.subject.name};
    try {
      player.session = std::make_unique<Session>(
          each.subject.launch(each.program, transport_, ranks), job, stop);
      player.version = player.session->version();
    } catch (const Error& error) {
      if (stopped()) throw;
      player.fault = "start: " + error.text();
    }
    players_.push_back(std::move(player));
  }
}

void Contest::turn(Player& player, Series& series, const Question& question, int round) {
  if (!player.session || !series.error.empty()) return;
  try {
    for (int tries = 0; tries < kTries; tries++) {
      const std::optional<Measurement> measured = player.session->measure(question);
      if (!measured) {
        series.error = kUnsupported;
        return;
      }
      const bool last = tries + 1 == kTries;
      if (measured->state() == State::mixed && !last) continue;
      series.turns.push_back({round, *measured});
      return;
    }
  } catch (const Error& error) {
    if (stopped()) return;
    player.fault = fmt::format("{} {}: {}", question.operation, question.bytes, error.text());
    series.error = error.text();
    player.session.reset();
  }
}

Cell Contest::measure(bench::Operation operation, size_t bytes) {
  Cell cell{transport_, operation, ranks_, bytes, {}};
  for (const Player& player : players_) {
    cell.series.push_back({.subject = player.name, .version = player.version});
    if (!player.session) cell.series.back().error = player.fault;
  }
  const Question question{bench::info(operation).name, bytes, options_.budget_s,
                          limit_s(options_, bytes, ranks_)};
  const size_t n = players_.size();
  for (int round = 0; round < options_.rounds && !stopped(); round++)
    for (size_t i = 0; i < n && !stopped(); i++) {
      const size_t who = (static_cast<size_t>(round) + i) % n;
      turn(players_[who], cell.series[who], question, round);
    }
  return cell;
}

}  // namespace hcomm::compare
