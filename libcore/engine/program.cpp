// SPDX-License-Identifier: Apache-2.0
#include "engine/program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"

namespace hcomm::engine {

namespace {

using schedule::kScratch;
using schedule::Schedule;
using schedule::Slice;
using schedule::Step;
using schedule::StepKind;

bool overlap(Slice x, Slice y) {
  return x.buffer == y.buffer && x.chunk < y.chunk + y.count && y.chunk < x.chunk + x.count;
}

enum class Receives { fused, apart };

// Compiles in four passes over the steps; each leaves its result in a member.
class Compiler {
 public:
  explicit Compiler(const Schedule& schedule)
      : schedule_(schedule), steps_(schedule.steps), group_(steps_.size()) {
    for (uint32_t i = 0; i < steps_.size(); i++) group_[i] = i;
  }

  // Empty when fusing receives would make two actions wait for one another.
  std::optional<Program> run(Receives receives) {
    find_runs();
    join_heads();
    if (receives == Receives::fused) find_direct_receives();
    make_actions();
    if (!order()) return std::nullopt;
    return std::move(program_);
  }

 private:
  bool reads(const Step& step, Slice slice) const {
    return overlap(step.a, slice) || overlap(step.b, slice);
  }

  // reduce(t, a, b), reduce(t, t, c), ... with nobody reading t in between: one group.
  void find_runs() {
    for (uint32_t i = 0; i < steps_.size(); i++) {
      if (steps_[i].kind != StepKind::reduce || group_[i] != i) continue;
      for (uint32_t k = i + 1; k < steps_.size(); k++) {
        const Step& next = steps_[k];
        const bool joins = next.kind == StepKind::reduce && next.to == steps_[i].to &&
                           next.a == steps_[i].to && !overlap(next.b, next.to);
        if (joins) {
          group_[k] = i;
        } else if (reads(next, steps_[i].to) || overlap(next.to, steps_[i].to)) {
          break;
        }
      }
    }
  }

  // A run that makes a scratch which only the head of another run reads is the beginning of that
  // run (in place, the fold of the ranks before ours): one fold, one rounding.
  void join_heads() {
    for (uint32_t i = 0; i < steps_.size(); i++) {
      const Step& head = steps_[i];
      if (head.kind != StepKind::reduce || group_[i] != i || head.a.buffer != kScratch) continue;
      int64_t writer = -1;
      bool alone = !overlap(head.b, head.a);
      for (uint32_t k = 0; k < steps_.size() && alone; k++) {
        if (steps_[k].kind == StepKind::reduce && steps_[k].to == head.a && k < i) {
          writer = group_[k];
          continue;  // a run reads its own target
        }
        alone = !overlap(steps_[k].to, head.a) && (k == i || !reads(steps_[k], head.a));
      }
      if (!alone || writer < 0) continue;
      for (uint32_t k = i; k < steps_.size(); k++)
        if (in_group(k, i)) group_[k] = static_cast<uint32_t>(writer);
    }
  }

  bool in_group(uint32_t step, uint32_t group) const { return group_[step] == group; }

  // Does any step of the group wait for a send of ours, or for what comes after one?
  bool waits_for_send(uint32_t group) const {
    for (uint32_t i = group; i < steps_.size(); i++) {
      if (!in_group(i, group)) continue;
      for (const uint32_t need : schedule_.needs_of(steps_[i]))
        if (steps_[need].kind == StepKind::send) return true;
    }
    return false;
  }

  // The one step that reads this receive's target, -1: none or several, or a later writer.
  int64_t only_reader(uint32_t receive) const {
    int64_t reader = -1;
    for (uint32_t i = 0; i < steps_.size(); i++) {
      if (i == receive) continue;
      if (overlap(steps_[i].to, steps_[receive].to)) return -1;
      if (!reads(steps_[i], steps_[receive].to)) continue;
      if (reader >= 0) return -1;
      reader = i;
    }
    return reader;
  }

  void find_direct_receives() {
    std::set<std::pair<uint32_t, uint32_t>> taken;  // a fold reads one message a peer
    for (uint32_t i = 0; i < steps_.size(); i++) {
      const Step& step = steps_[i];
      if (step.kind != StepKind::recv || step.to.buffer != kScratch) continue;
      const int64_t reader = only_reader(i);
      if (reader < 0 || steps_[static_cast<size_t>(reader)].kind != StepKind::reduce) continue;
      const Step& fold = steps_[static_cast<size_t>(reader)];
      if ((fold.a == step.to) == (fold.b == step.to)) continue;
      const uint32_t group = group_[static_cast<size_t>(reader)];
      const uint32_t peer = schedule_.peers_of(step)[0];
      if (waits_for_send(group) || !taken.insert({group, peer}).second) continue;
      group_[i] = group;
    }
  }

  uint32_t segments_for(Slice slice) {
    const uint32_t first = program_.segments;
    program_.segments += slice.count;
    return first;
  }
  Source local(Slice slice) { return {slice, segments_for(slice), -1, 0}; }
  Source incoming(Slice slice, uint32_t peer) {
    return {slice, segments_for(slice), static_cast<int32_t>(peer), program_.incoming++};
  }

  Source source_of(Slice slice, uint32_t group) {
    for (uint32_t i = 0; i < steps_.size(); i++)
      if (steps_[i].kind == StepKind::recv && in_group(i, group) && group != i &&
          steps_[i].to == slice)
        return incoming(slice, schedule_.peers_of(steps_[i])[0]);
    return local(slice);
  }

  void make_fold(Action& action, uint32_t group) {
    action.kind = ActionKind::fold;
    for (uint32_t i = group; i < steps_.size(); i++) {
      if (!in_group(i, group) || steps_[i].kind != StepKind::reduce) continue;
      action.to = steps_[i].to;
      if (i == group) program_.sources.push_back(source_of(steps_[i].a, group));
      program_.sources.push_back(source_of(steps_[i].b, group));
    }
  }

  void make_action(uint32_t i) {
    const Step& step = steps_[i];
    Action action;
    action.step = i;
    action.to = step.to;
    action.first_source = static_cast<uint32_t>(program_.sources.size());
    action.first_peer = static_cast<uint32_t>(program_.peers.size());
    const auto peers = schedule_.peers_of(step);
    switch (step.kind) {
      case StepKind::send:
        action.kind = ActionKind::send;
        action.first_message = program_.outgoing;
        program_.outgoing += step.peer_count;
        program_.peers.insert(program_.peers.end(), peers.begin(), peers.end());
        program_.sources.push_back(local(step.a));
        break;
      case StepKind::recv:
        action.kind = ActionKind::receive;
        program_.sources.push_back(incoming(step.to, peers[0]));
        break;
      case StepKind::copy:
        action.kind = ActionKind::copy;
        program_.sources.push_back(local(step.a));
        break;
      case StepKind::reduce: make_fold(action, i); break;
      default: HCOMM_CHECK(false, "step kind {} is not offered", schedule::name(step.kind));
    }
    action.source_count = static_cast<uint32_t>(program_.sources.size()) - action.first_source;
    action.peer_count = static_cast<uint32_t>(program_.peers.size()) - action.first_peer;
    for (uint32_t s = 0; s < action.source_count; s++)
      if (program_.sources[action.first_source + s].peer >= 0) action.incoming++;
    action.to_segment = segments_for(action.to);
    program_.actions.push_back(action);
  }

  // Actions in the order of each group's last step, so that needs point backwards.
  void make_actions() {
    std::vector<uint32_t> last(steps_.size());
    for (uint32_t i = 0; i < steps_.size(); i++) last[group_[i]] = i;
    action_of_.assign(steps_.size(), 0);
    for (uint32_t i = 0; i < steps_.size(); i++) {
      if (last[group_[i]] != i) continue;
      const auto index = static_cast<uint32_t>(program_.actions.size());
      for (uint32_t k = 0; k <= i; k++)
        if (in_group(k, group_[i])) action_of_[k] = index;
      make_action(group_[i]);
    }
    for (Action& action : program_.actions) action.result = is_result(action);
    program_.scratch = schedule_.scratch;
    program_.parts = schedule_.parts;
  }

  bool is_result(const Action& action) const {
    const auto& sources = program_.sources;
    return action.kind != ActionKind::send && action.to.buffer != kScratch &&
           std::none_of(sources.begin(), sources.end(), [&](const Source& source) {
             return source.peer < 0 && overlap(source.slice, action.to);
           });
  }

  // Needs, and the order of messages to and from each peer, as counters and successors. False when
  // an edge points backwards.
  bool order() {
    std::vector<std::set<uint32_t>> after(program_.actions.size());
    bool forward = true;
    const auto edge = [&](uint32_t from, uint32_t to) {
      forward = forward && from <= to;
      if (from != to && after[from].insert(to).second) program_.actions[to].waits++;
    };
    std::map<std::pair<bool, uint32_t>, uint32_t> previous;  // (sending, peer) -> action
    for (uint32_t i = 0; i < steps_.size(); i++) {
      const uint32_t action = action_of_[i];
      for (const uint32_t need : schedule_.needs_of(steps_[i])) edge(action_of_[need], action);
      const bool sending = steps_[i].kind == StepKind::send;
      if (!sending && steps_[i].kind != StepKind::recv) continue;
      for (const uint32_t peer : schedule_.peers_of(steps_[i])) {
        const auto [at, fresh] = previous.insert({{sending, peer}, action});
        if (!fresh) {
          edge(at->second, action);
          at->second = action;
        }
      }
    }
    for (uint32_t i = 0; i < program_.actions.size(); i++) {
      program_.actions[i].first_next = static_cast<uint32_t>(program_.next.size());
      program_.actions[i].next_count = static_cast<uint32_t>(after[i].size());
      program_.next.insert(program_.next.end(), after[i].begin(), after[i].end());
      if (program_.actions[i].waits == 0) program_.first.push_back(i);
    }
    return forward;
  }

  const Schedule& schedule_;
  const std::vector<Step>& steps_;
  std::vector<uint32_t> group_;      // of each step: the first step of its action
  std::vector<uint32_t> action_of_;  // of each step
  Program program_;
};

}  // namespace

Program compile(const Schedule& schedule) {
  if (auto program = Compiler(schedule).run(Receives::fused)) return *std::move(program);
  auto program = Compiler(schedule).run(Receives::apart);
  HCOMM_CHECK(program.has_value(), "needs of {} point forwards", schedule.algorithm);
  return *std::move(program);
}

}  // namespace hcomm::engine
