// SPDX-License-Identifier: Apache-2.0
// Programs: what is fused and what is not, and that fusing never makes ranks wait for one another
// in a circle: the programs of all ranks are run by a small simulator in which a send is done only
// when its receiver has taken the message, for every algorithm, in place or not.
#include "engine/program.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <tuple>

#include "algorithm/algorithm.h"

namespace hcomm::engine {
namespace {

using algorithm::Algorithm;
using schedule::Collective;
using schedule::Order;
using schedule::Shape;

size_t count(const Program& program, ActionKind kind) {
  size_t found = 0;
  for (const Action& action : program.actions) found += action.kind == kind;
  return found;
}

Program compiled(Collective collective, const char* name, Shape shape) {
  shape.collective = collective;
  return compile(algorithm::build(*algorithm::find(collective, name), shape));
}

TEST(Program, DirectAllReduceIsOneSendAndOneFold) {
  const Program program = compiled(Collective::all_reduce, "direct", {.ranks = 8, .rank = 3});
  ASSERT_EQ(program.actions.size(), 2u);
  EXPECT_EQ(count(program, ActionKind::send), 1u);
  for (const Action& action : program.actions) {
    if (action.kind != ActionKind::fold) continue;
    EXPECT_EQ(action.source_count, 8u);
    EXPECT_EQ(action.incoming, 7u);
  }
}

TEST(Program, RingReducesWhatItReceivesWithoutACopy) {
  const Program program = compiled(Collective::all_reduce, "ring", {.ranks = 5, .rank = 0});
  EXPECT_EQ(count(program, ActionKind::copy), 0u);
  EXPECT_EQ(count(program, ActionKind::fold), 4u);
  EXPECT_EQ(count(program, ActionKind::receive), 4u);  // the gathering half
}

// A value that a reduction reads twice is no head of a longer fold.
// What is passed on is read again: it belongs into the caches.
TEST(Program, ResultsAreWhatIsNotReadAgain) {
  for (const auto& [name, kind, results] :
       {std::tuple{"direct", ActionKind::fold, 1u}, {"direct_scatter", ActionKind::fold, 0u},
        {"direct_scatter", ActionKind::receive, 4u}, {"ring", ActionKind::receive, 1u}}) {
    const Program program = compiled(Collective::all_reduce, name, {.ranks = 5, .rank = 2});
    size_t found = 0;
    for (const Action& action : program.actions) found += action.kind == kind && action.result;
    EXPECT_EQ(found, results) << name;
  }
}

TEST(Program, AValueReadTwiceIsComputedFirst) {
  schedule::Builder builder({.collective = Collective::all_reduce});
  const schedule::Slice twice = builder.scratch(builder.input());
  builder.reduce(twice, builder.input(), builder.input());
  builder.reduce(builder.output(), twice, twice);
  const Program program = compile(builder.finish("test", Order::any));
  EXPECT_EQ(count(program, ActionKind::fold), 2u);
}

// A fold rounds once; whether a rank works in place must not change where it rounds.
TEST(Program, FoldsHaveTheSameSourcesInPlace) {
  for (const Algorithm& each : algorithm::all()) {
    if (!schedule::reduces(each.collective) || each.order != Order::rank) continue;
    for (uint32_t rank = 0; rank < 5; rank++) {
      std::vector<uint32_t> folds[2];
      for (const bool in_place : {false, true}) {
        const Shape shape{.collective = each.collective, .in_place = in_place, .ranks = 5,
                          .rank = rank};
        const Program program = compile(algorithm::build(each, shape));
        for (const Action& action : program.actions)
          if (action.kind == ActionKind::fold) folds[in_place].push_back(action.source_count);
      }
      EXPECT_EQ(folds[0], folds[1])
          << schedule::name(each.collective) << " " << each.name << " rank " << rank;
    }
  }
}

// An action starts when its waits are over; a send is done when all its peers have taken it, a
// receive or fold when all its messages are there, taken together.
class Simulation {
 public:
  explicit Simulation(std::vector<Program> programs) : ranks_(programs.size()) {
    for (size_t rank = 0; rank < programs.size(); rank++) {
      Rank& at = ranks_[rank];
      at.program = std::move(programs[rank]);
      for (const Action& action : at.program.actions) {
        at.waits.push_back(action.waits);
        at.untaken.push_back(action.peer_count);
      }
      at.left = at.program.actions.size();
      for (const uint32_t first : at.program.first) start(rank, first);
    }
  }

  bool finishes() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < ranks_.size(); rank++)
        for (size_t i = 0; i < ranks_[rank].started.size();) {
          const uint32_t action = ranks_[rank].started[i];
          if (!try_finish(rank, action)) {
            i++;
            continue;
          }
          ranks_[rank].started.erase(ranks_[rank].started.begin() + static_cast<long>(i));
          finish(rank, action);
          moved = true;
        }
    }
    for (const Rank& rank : ranks_)
      if (rank.left > 0) return false;
    return true;
  }

 private:
  struct Rank {
    Program program;
    std::vector<uint32_t> waits, untaken, started;
    size_t left = 0;
  };
  struct Message {
    size_t from;
    uint32_t action;
  };

  void start(size_t rank, uint32_t index) {
    const Rank& at = ranks_[rank];
    const Action& action = at.program.actions[index];
    for (uint32_t i = 0; i < action.peer_count; i++)
      channels_[{rank, at.program.peers[action.first_peer + i]}].push_back({rank, index});
    ranks_[rank].started.push_back(index);
  }

  bool try_finish(size_t rank, uint32_t index) {
    Rank& at = ranks_[rank];
    const Action& action = at.program.actions[index];
    if (action.kind == ActionKind::send) return at.untaken[index] == 0;
    const Source* sources = at.program.sources.data() + action.first_source;
    for (uint32_t i = 0; i < action.source_count; i++)
      if (sources[i].peer >= 0 && channels_[{static_cast<size_t>(sources[i].peer), rank}].empty())
        return false;
    for (uint32_t i = 0; i < action.source_count; i++) {
      if (sources[i].peer < 0) continue;
      auto& channel = channels_[{static_cast<size_t>(sources[i].peer), rank}];
      const Message message = channel.front();
      channel.pop_front();
      ranks_[message.from].untaken[message.action]--;
    }
    return true;
  }

  void finish(size_t rank, uint32_t index) {
    Rank& at = ranks_[rank];
    at.left--;
    const Action& action = at.program.actions[index];
    for (uint32_t i = 0; i < action.next_count; i++) {
      const uint32_t next = at.program.next[action.first_next + i];
      if (--at.waits[next] == 0) start(rank, next);
    }
  }

  std::vector<Rank> ranks_;
  std::map<std::pair<size_t, size_t>, std::deque<Message>> channels_;
};

class Fused : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Fused, NeverWaitInACircle) {
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 13u, 16u, 17u})
    for (const uint32_t root : {0u, ranks - 1})
      for (int place = 0; place < 3; place++) {  // apart, in place, mixed
        if (root > 0 && !schedule::rooted(GetParam()->collective)) continue;
        Shape shape{.collective = GetParam()->collective, .ranks = ranks, .root = root};
        if (!GetParam()->fits(shape)) continue;
        std::vector<Program> programs;
        for (uint32_t rank = 0; rank < ranks; rank++) {
          shape.rank = rank;
          shape.in_place = place == 1 || (place == 2 && rank % 2 == 1);
          programs.push_back(compile(algorithm::build(*GetParam(), shape)));
        }
        EXPECT_TRUE(Simulation(std::move(programs)).finishes())
            << ranks << " ranks, root " << root << ", place " << place;
      }
}

std::vector<const Algorithm*> table() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& each : algorithm::all()) all.push_back(&each);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, Fused, testing::ValuesIn(table()), [](const auto& entry) {
  return std::string(schedule::name(entry.param->collective)) + "_" +
         std::string(entry.param->name);
});

}  // namespace
}  // namespace hcomm::engine
