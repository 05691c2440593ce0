// SPDX-License-Identifier: Apache-2.0
#include "schedule/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>
#include <vector>

namespace hcomm::schedule {
namespace {

using Text = fmt::memory_buffer;

template <typename... Args>
void put(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

std::string slice_text(Slice slice) {
  static constexpr std::string_view kBuffers[] = {"in", "out", "tmp"};
  if (slice.buffer >= std::size(kBuffers)) return slice.buffer == kNothing ? "nothing" : "?";
  const std::string_view buffer = kBuffers[slice.buffer];
  if (slice.count == 1) return fmt::format("{}[{}]", buffer, slice.chunk);
  if (slice.count == 0) return fmt::format("{}[{}..none]", buffer, slice.chunk);
  return fmt::format("{}[{}..{}]", buffer, slice.chunk, slice.chunk + slice.count - 1);
}

// What a scratch chunk mirrors, runs of chunks together: "tmp[0..3] as out[4..7]".
void put_scratch(Text& text, const std::vector<Slice>& scratch) {
  for (uint32_t first = 0; first < scratch.size();) {
    uint32_t end = first + 1;
    const Slice mirrored = scratch[first];
    while (end < scratch.size() && scratch[end].buffer == mirrored.buffer &&
           (mirrored.buffer == kNothing || scratch[end].chunk == mirrored.chunk + end - first))
      end++;
    const Slice run{kScratch, first, end - first};
    if (mirrored.buffer == kNothing)
      put(text, "  {} empty\n", slice_text(run));
    else
      put(text, "  {} as {}\n", slice_text(run),
          slice_text({mirrored.buffer, mirrored.chunk, run.count}));
    first = end;
  }
}

std::string operands_text(const Schedule& schedule, const Step& step) {
  switch (step.kind) {
    case StepKind::send:
      return fmt::format("{} to {}", slice_text(step.a), fmt::join(schedule.peers_of(step), ","));
    case StepKind::recv:
      return fmt::format("{} from {}", slice_text(step.to),
                         fmt::join(schedule.peers_of(step), ","));
    case StepKind::reduce:
      return fmt::format("{} = {} + {}", slice_text(step.to), slice_text(step.a),
                         slice_text(step.b));
    case StepKind::copy:
    case StepKind::encode:
    case StepKind::decode:
    case StepKind::native:
      return fmt::format("{} = {}", slice_text(step.to), slice_text(step.a));
  }
  return {};
}

// Messages of all ranks as (send, receive) in channel order; what has no partner is left out.
struct Place {
  size_t rank, step;
};

std::vector<std::pair<Place, Place>> messages_of(std::span<const Schedule> all) {
  std::map<std::pair<size_t, size_t>, std::vector<Place>> receives;
  for (size_t rank = 0; rank < all.size(); rank++)
    for (size_t i = 0; i < all[rank].steps.size(); i++)
      if (all[rank].steps[i].kind == StepKind::recv)
        for (const uint32_t peer : all[rank].peers_of(all[rank].steps[i]))
          receives[{peer, rank}].push_back({rank, i});
  std::map<std::pair<size_t, size_t>, size_t> taken;
  std::vector<std::pair<Place, Place>> messages;
  for (size_t rank = 0; rank < all.size(); rank++)
    for (size_t i = 0; i < all[rank].steps.size(); i++)
      if (all[rank].steps[i].kind == StepKind::send)
        for (const uint32_t peer : all[rank].peers_of(all[rank].steps[i])) {
          const auto& waiting = receives[{rank, peer}];
          const size_t position = taken[{rank, peer}]++;
          if (position < waiting.size()) messages.push_back({{rank, i}, waiting[position]});
        }
  return messages;
}

}  // namespace

std::string step_text(const Schedule& schedule, const Step& step) {
  return fmt::format("{} {}", name(step.kind), operands_text(schedule, step));
}

std::string dump(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  Text text;
  put(text, "{} {} rank {} of {}", name(shape.collective), schedule.algorithm, shape.rank,
      shape.ranks);
  if (rooted(shape.collective)) put(text, " root {}", shape.root);
  put(text, ", parts {}", schedule.parts);
  if (schedule.order == Order::rank) put(text, ", rank order");
  if (shape.varied) put(text, ", varied");
  if (shape.in_place) put(text, ", in place");
  put(text, "\n");
  put_scratch(text, schedule.scratch);
  for (size_t i = 0; i < schedule.steps.size(); i++) {
    const Step& step = schedule.steps[i];
    const std::string operands = operands_text(schedule, step);
    if (step.need_count == 0)
      put(text, "{:3} {:6}  {}\n", i, name(step.kind), operands);
    else
      put(text, "{:3} {:6}  {:28} after {}\n", i, name(step.kind), operands,
          fmt::join(schedule.needs_of(step), ","));
  }
  return fmt::to_string(text);
}

std::string dump_dot(std::span<const Schedule> all) {
  Text text;
  put(text, "digraph schedule {{\n  rankdir=TB;\n  node [shape=box, fontname=monospace];\n");
  for (size_t rank = 0; rank < all.size(); rank++) {
    const Schedule& schedule = all[rank];
    put(text, "  subgraph cluster_{} {{\n    label=\"rank {}\";\n", rank, rank);
    for (size_t i = 0; i < schedule.steps.size(); i++)
      put(text, "    r{}s{} [label=\"{} {}\"];\n", rank, i, i,
          step_text(schedule, schedule.steps[i]));
    for (size_t i = 0; i < schedule.steps.size(); i++)
      for (const uint32_t need : schedule.needs_of(schedule.steps[i]))
        put(text, "    r{}s{} -> r{}s{};\n", rank, need, rank, i);
    put(text, "  }}\n");
  }
  for (const auto& [from, to] : messages_of(all))
    put(text, "  r{}s{} -> r{}s{} [style=dashed, constraint=false];\n", from.rank, from.step,
        to.rank, to.step);
  put(text, "}}\n");
  return fmt::to_string(text);
}

}  // namespace hcomm::schedule
