// SPDX-License-Identifier: Apache-2.0
// What the algorithms are known for: the number of message rounds on the longest path and the
// blocks that the busiest rank sends, against the formulas of the textbook, for 2..33 ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>

#include "algorithm/algorithm.h"

namespace hcomm::algorithm {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Step;
using schedule::StepKind;

struct Structure {
  uint32_t rounds = 0;
  double sent_blocks = 0;  // a multicast counts once a peer
};

// Runs all ranks' steps as messages allow; a receive is a round later than what it waits for.
uint32_t rounds_of(const std::vector<Schedule>& all) {
  std::map<std::pair<uint32_t, uint32_t>, std::deque<uint32_t>> in_flight;  // rounds of sends
  std::vector<std::vector<uint32_t>> round(all.size());
  uint32_t most = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < all.size(); rank++) {
      const Schedule& schedule = all[rank];
      while (round[rank].size() < schedule.steps.size()) {
        const Step& step = schedule.steps[round[rank].size()];
        uint32_t at = 0;
        for (const uint32_t need : schedule.needs_of(step)) at = std::max(at, round[rank][need]);
        for (const uint32_t peer : schedule.peers_of(step))
          if (step.kind == StepKind::send) in_flight[{rank, peer}].push_back(at);
        if (step.kind == StepKind::recv) {
          std::deque<uint32_t>& channel = in_flight[{schedule.peers_of(step)[0], rank}];
          if (channel.empty()) break;
          at = std::max(at, channel.front() + 1);
          channel.pop_front();
        }
        most = std::max(most, at);
        round[rank].push_back(at);
        moved = true;
      }
    }
  }
  for (uint32_t rank = 0; rank < all.size(); rank++)
    EXPECT_EQ(round[rank].size(), all[rank].steps.size()) << "rank " << rank << " is stuck";
  return most;
}

Structure structure_of(const std::vector<Schedule>& all) {
  Structure structure{.rounds = rounds_of(all)};
  for (const Schedule& schedule : all) {
    uint32_t chunks = 0;
    for (const Step& step : schedule.steps)
      if (step.kind == StepKind::send) chunks += step.a.count * step.peer_count;
    structure.sent_blocks =
        std::max(structure.sent_blocks, static_cast<double>(chunks) / schedule.parts);
  }
  return structure;
}

uint32_t log2_up(uint32_t n) {
  return static_cast<uint32_t>(std::bit_width(n - 1));
}
uint32_t log2_down(uint32_t n) {
  return static_cast<uint32_t>(std::bit_width(n)) - 1;
}
double share(uint32_t n) {
  return (n - 1.0) / n;
}

struct Known {
  Collective collective;
  std::string_view name;
  uint32_t (*rounds)(uint32_t ranks);     // at most
  double (*sent_blocks)(uint32_t ranks);  // at most
};

// Surplus ranks of a cube cost a round before and one after.
uint32_t surplus(uint32_t n) {
  return std::has_single_bit(n) ? 0 : 2;
}

constexpr Known kKnown[] = {
    {Collective::all_reduce, "direct", [](uint32_t) { return 1u; },
     [](uint32_t n) { return n - 1.0; }},
    {Collective::all_reduce, "direct_scatter", [](uint32_t) { return 2u; },
     [](uint32_t n) { return 2 * share(n); }},
    {Collective::all_reduce, "ring", [](uint32_t n) { return 2 * (n - 1); },
     [](uint32_t n) { return 2 * share(n); }},
    {Collective::all_reduce, "recursive_doubling",
     [](uint32_t n) { return log2_down(n) + surplus(n); },
     [](uint32_t n) { return log2_down(n) + surplus(n) / 2.0; }},
    {Collective::all_reduce, "halving_doubling",
     [](uint32_t n) { return 2 * log2_down(n) + surplus(n); },
     [](uint32_t n) { return 2 * share(std::bit_floor(n)) + surplus(n) / 2.0; }},
    {Collective::all_reduce, "double_tree", [](uint32_t n) { return 2 * (log2_up(n) + 1); },
     [](uint32_t) { return 2.0; }},
    {Collective::reduce, "binomial", log2_up, [](uint32_t) { return 1.0; }},
    {Collective::reduce, "chain", [](uint32_t n) { return n - 1; }, [](uint32_t) { return 1.0; }},
    {Collective::reduce, "double_tree", [](uint32_t n) { return log2_up(n) + 1; },
     [](uint32_t) { return 1.0; }},
    {Collective::broadcast, "binomial", log2_up, [](uint32_t n) { return log2_up(n) * 1.0; }},
    {Collective::broadcast, "chain", [](uint32_t n) { return n - 1; },
     [](uint32_t) { return 1.0; }},
    {Collective::broadcast, "double_tree", [](uint32_t n) { return log2_up(n) + 1; },
     [](uint32_t) { return 1.0; }},
    {Collective::broadcast, "scatter_allgather", [](uint32_t) { return 2u; },
     [](uint32_t) { return 1.0; }},
    {Collective::all_gather, "ring", [](uint32_t n) { return n - 1; },
     [](uint32_t n) { return n - 1.0; }},
    {Collective::all_gather, "bruck", log2_up, [](uint32_t n) { return n - 1.0; }},
    {Collective::all_gather, "recursive_doubling",
     [](uint32_t n) { return log2_down(n) + surplus(n); },
     [](uint32_t n) {  // with partners everywhere a run of corners is twice as many ranks
       return std::has_single_bit(n) ? n - 1.0 : 2 * (std::bit_floor(n) - 1.0) + n;
     }},
    {Collective::reduce_scatter, "ring", [](uint32_t n) { return n - 1; },
     [](uint32_t n) { return n - 1.0; }},
    {Collective::reduce_scatter, "halving", [](uint32_t n) { return log2_down(n) + surplus(n); },
     [](uint32_t n) { return 1.0 * n; }},
    {Collective::gather, "binomial", log2_up, [](uint32_t n) { return n / 2.0; }},
    {Collective::scatter, "binomial", log2_up, [](uint32_t n) { return n - 1.0; }},
    {Collective::all_to_all, "bruck", log2_up, [](uint32_t n) { return n / 2.0 * log2_up(n); }},
    {Collective::barrier, "dissemination", log2_up, [](uint32_t n) { return n - 1.0; }},
    {Collective::barrier, "tree", [](uint32_t n) { return 2 * log2_up(n); },
     [](uint32_t n) { return 1.0 * n * (log2_up(n) + 1); }},
};

TEST(Structure, IsThatOfTheTextbook) {
  for (const Known& known : kKnown) {
    const Algorithm* algorithm = find(known.collective, known.name);
    ASSERT_NE(algorithm, nullptr) << known.name;
    for (uint32_t ranks = 2; ranks <= 33; ranks++) {
      const Structure found =
          structure_of(build_all(*algorithm, {.collective = known.collective, .ranks = ranks}));
      const std::string where =
          fmt::format("{} {}, {} ranks", schedule::name(known.collective), known.name, ranks);
      EXPECT_LE(found.rounds, known.rounds(ranks)) << where;
      EXPECT_LE(found.sent_blocks, known.sent_blocks(ranks) + 1e-9) << where;
    }
  }
}

}  // namespace
}  // namespace hcomm::algorithm
