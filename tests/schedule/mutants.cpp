// SPDX-License-Identifier: Apache-2.0
#include "schedule/mutants.h"

#include <algorithm>
#include <utility>

namespace hcomm::schedule {
namespace {

using Random = std::mt19937_64;

uint32_t below(Random& random, size_t count) {
  return static_cast<uint32_t>(random() % count);
}

// A random step that passes, kNone when none does.
constexpr uint32_t kNone = ~0u;
template <typename Test>
uint32_t pick(const Schedule& schedule, Random& random, Test&& passes) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < schedule.steps.size(); i++)
    if (passes(schedule.steps[i])) found.push_back(i);
  return found.empty() ? kNone : found[below(random, found.size())];
}

uint32_t pick_kind(const Schedule& schedule, Random& random, StepKind kind) {
  return pick(schedule, random, [kind](const Step& step) { return step.kind == kind; });
}

std::vector<uint32_t> needs_of(const Schedule& schedule, uint32_t step) {
  const auto needs = schedule.needs_of(schedule.steps[step]);
  return {needs.begin(), needs.end()};
}

void set_needs(Schedule& schedule, uint32_t step, const std::vector<uint32_t>& needs) {
  schedule.steps[step].first_need = static_cast<uint32_t>(schedule.needs.size());
  schedule.steps[step].need_count = static_cast<uint32_t>(needs.size());
  schedule.needs.insert(schedule.needs.end(), needs.begin(), needs.end());
}

// One of the slices that the step uses.
Slice& slice_of(Step& step, Random& random) {
  std::vector<Slice*> used;
  if (step.kind != StepKind::recv) used.push_back(&step.a);
  if (step.kind == StepKind::reduce) used.push_back(&step.b);
  if (step.kind != StepKind::send) used.push_back(&step.to);
  return *used[below(random, used.size())];
}

// Who waited for the step waits for what it waited for.
bool drop_step(Schedule& schedule, Random& random) {
  if (schedule.steps.empty()) return false;
  const uint32_t gone = below(random, schedule.steps.size());
  const std::vector<uint32_t> inherited = needs_of(schedule, gone);
  for (uint32_t i = gone + 1; i < schedule.steps.size(); i++) {
    std::vector<uint32_t> needs = needs_of(schedule, i), kept;
    for (const uint32_t need : needs)
      if (need == gone)
        kept.insert(kept.end(), inherited.begin(), inherited.end());
      else
        kept.push_back(need > gone ? need - 1 : need);
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    set_needs(schedule, i, kept);
  }
  schedule.steps.erase(schedule.steps.begin() + gone);
  return true;
}

// Two steps do one another's work; the needs stay where they are.
bool swap_steps(Schedule& schedule, Random& random) {
  if (schedule.steps.size() < 2) return false;
  Step& a = schedule.steps[below(random, schedule.steps.size())];
  Step& b = schedule.steps[below(random, schedule.steps.size())];
  std::swap(a, b);
  std::swap(a.first_need, b.first_need);
  std::swap(a.need_count, b.need_count);
  return &a != &b;
}

bool swap_slices(Schedule& schedule, Random& random) {
  if (schedule.steps.empty()) return false;
  Step& a = schedule.steps[below(random, schedule.steps.size())];
  const uint32_t other = pick_kind(schedule, random, a.kind);
  Step& b = schedule.steps[other];
  std::swap(a.a, b.a);
  std::swap(a.b, b.b);
  std::swap(a.to, b.to);
  return !(a == b);
}

bool wrong_chunk(Schedule& schedule, Random& random) {
  if (schedule.steps.empty()) return false;
  Slice& slice = slice_of(schedule.steps[below(random, schedule.steps.size())], random);
  const uint32_t chunks = slice.buffer == kScratch
                              ? static_cast<uint32_t>(schedule.scratch.size())
                              : blocks_of(schedule.shape, slice.buffer) * schedule.parts;
  if (chunks <= slice.count) return false;
  const uint32_t before = slice.chunk;
  slice.chunk = below(random, chunks - slice.count + 1);
  return slice.chunk != before;
}

bool wrong_buffer(Schedule& schedule, Random& random) {
  if (schedule.steps.empty()) return false;
  Slice& slice = slice_of(schedule.steps[below(random, schedule.steps.size())], random);
  slice.buffer = static_cast<uint16_t>((slice.buffer + 1 + below(random, 2)) % 3);
  return true;
}

bool wrong_count(Schedule& schedule, Random& random) {
  const uint32_t i = pick(
      schedule, random, [](const Step& step) { return std::max(step.a.count, step.to.count) > 1; });
  if (i == kNone) return false;
  Step& step = schedule.steps[i];
  const bool tail = random() % 2 == 0;
  for (Slice* slice : {&step.a, &step.b, &step.to}) {
    if (slice->count == 0) continue;
    slice->count--;
    if (!tail) slice->chunk++;
  }
  return true;
}

bool wrong_peer(Schedule& schedule, Random& random) {
  const uint32_t i = pick(schedule, random, [](const Step& step) { return step.peer_count > 0; });
  if (i == kNone || schedule.shape.ranks < 3) return false;
  const Step& step = schedule.steps[i];
  uint32_t& peer = schedule.peers[step.first_peer + below(random, step.peer_count)];
  const uint32_t before = peer;
  while (peer == before || peer == schedule.shape.rank) peer = below(random, schedule.shape.ranks);
  return true;
}

bool drop_peer(Schedule& schedule, Random& random) {
  const uint32_t i = pick(schedule, random, [](const Step& step) { return step.peer_count > 1; });
  if (i == kNone) return false;
  schedule.steps[i].peer_count--;
  if (random() % 2 == 0) schedule.steps[i].first_peer++;
  return true;
}

bool drop_need(Schedule& schedule, Random& random) {
  const uint32_t i = pick(schedule, random, [](const Step& step) { return step.need_count > 0; });
  if (i == kNone) return false;
  std::vector<uint32_t> needs = needs_of(schedule, i);
  needs.erase(needs.begin() + below(random, needs.size()));
  set_needs(schedule, i, needs);
  return true;
}

// A receive that waits for a send needs credits that the channel may not have.
bool wait_for_send(Schedule& schedule, Random& random) {
  const uint32_t recv = pick_kind(schedule, random, StepKind::recv);
  if (recv == kNone) return false;
  std::vector<uint32_t> needs = needs_of(schedule, recv);
  for (uint32_t i = recv; i-- > 0;)
    if (schedule.steps[i].kind == StepKind::send &&
        std::find(needs.begin(), needs.end(), i) == needs.end()) {
      needs.push_back(i);
      set_needs(schedule, recv, needs);
      return true;
    }
  return false;
}

bool swap_operands(Schedule& schedule, Random& random) {
  const uint32_t i = pick_kind(schedule, random, StepKind::reduce);
  if (i == kNone) return false;
  std::swap(schedule.steps[i].a, schedule.steps[i].b);
  return true;
}

// (x + y) + z becomes x + (y + z), on this rank alone; y + z takes the place of y.
void regroup(Schedule& schedule, uint32_t first, uint32_t second) {
  Step& inner = schedule.steps[first];
  Step& outer = schedule.steps[second];
  std::vector<uint32_t> inner_needs = needs_of(schedule, first);
  std::vector<uint32_t> outer_needs = needs_of(schedule, second);
  for (const uint32_t need : outer_needs)
    if (need < first) inner_needs.push_back(need);
  outer_needs.push_back(first);
  outer.a = inner.a;
  inner.a = inner.b;
  inner.to = inner.b;
  std::swap(inner.b, outer.b);
  set_needs(schedule, first, inner_needs);
  set_needs(schedule, second, outer_needs);
}

bool uneven_tree(Schedule& schedule, Random& random) {
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (uint32_t i = 0; i < schedule.steps.size(); i++)
    for (uint32_t j = i + 1; j < schedule.steps.size(); j++) {
      const Step &inner = schedule.steps[i], &outer = schedule.steps[j];
      if (inner.kind == StepKind::reduce && outer.kind == StepKind::reduce && outer.a == inner.to &&
          inner.b.buffer == kScratch)
        found.push_back({i, j});
    }
  if (found.empty()) return false;
  const auto [first, second] = found[below(random, found.size())];
  regroup(schedule, first, second);
  return true;
}

bool count_twice(Schedule& schedule, Random& random) {
  const uint32_t i = pick_kind(schedule, random, StepKind::reduce);
  if (i == kNone) return false;
  Step& step = schedule.steps[i];
  (random() % 2 == 0 ? step.a : step.b) = random() % 2 == 0 ? step.a : step.b;
  return true;
}

// The last step that reduces is done again, onto its own result.
bool add_again(Schedule& schedule, Random& random) {
  const uint32_t i = pick_kind(schedule, random, StepKind::reduce);
  if (i == kNone) return false;
  Step again = schedule.steps[i];
  again.a = again.to;
  std::vector<uint32_t> all(schedule.steps.size());
  for (uint32_t j = 0; j < all.size(); j++) all[j] = j;
  schedule.steps.push_back(again);
  set_needs(schedule, static_cast<uint32_t>(all.size()), all);
  return true;
}

bool repeat_step(Schedule& schedule, Random& random) {
  if (schedule.steps.empty()) return false;
  schedule.steps.push_back(schedule.steps[below(random, schedule.steps.size())]);
  return true;
}

bool wrong_mirror(Schedule& schedule, Random& random) {
  if (schedule.scratch.empty()) return false;
  Slice& mirrored = schedule.scratch[below(random, schedule.scratch.size())];
  const Slice before = mirrored;
  mirrored = schedule.scratch[below(random, schedule.scratch.size())];
  return mirrored != before;
}

constexpr Mutation kMutations[] = {
    {"drop step", drop_step},         {"swap steps", swap_steps},
    {"swap slices", swap_slices},     {"wrong chunk", wrong_chunk},
    {"wrong buffer", wrong_buffer},   {"wrong count", wrong_count},
    {"wrong peer", wrong_peer},       {"drop peer", drop_peer},
    {"drop need", drop_need},         {"wait for send", wait_for_send},
    {"swap operands", swap_operands}, {"uneven tree", uneven_tree},
    {"count twice", count_twice},     {"add again", add_again},
    {"repeat step", repeat_step},     {"wrong mirror", wrong_mirror},
};

}  // namespace

std::span<const Mutation> mutations() {
  return kMutations;
}

}  // namespace hcomm::schedule
