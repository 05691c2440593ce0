// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "policy/policy.h"

namespace hcomm::policy {
namespace {

using schedule::Link;
using schedule::Machine;

// The best candidate of each algorithm, the fastest first.
std::vector<Candidate> best_of_each(const Plan& plan) {
  std::vector<Candidate> best;
  for (const Candidate& candidate : plan.candidates) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
      return other.algorithm == candidate.algorithm;
    });
    if (same == best.end())
      best.push_back(candidate);
    else if (candidate.predicted_us < same->predicted_us)
      *same = candidate;
  }
  std::stable_sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted_us < b.predicted_us;
  });
  return best;
}

struct Span {
  Link least{.latency_us = 1e300, .us_per_byte = 1e300}, most{.latency_us = 0, .us_per_byte = 0};
  bool any = false;
  void add(const Link& link) {
    least.latency_us = std::min(least.latency_us, link.latency_us);
    least.us_per_byte = std::min(least.us_per_byte, link.us_per_byte);
    most.latency_us = std::max(most.latency_us, link.latency_us);
    most.us_per_byte = std::max(most.us_per_byte, link.us_per_byte);
    any = true;
  }
};

std::string range(double low, double high) {
  return high - low < 0.005 * high ? fmt::format("{:.3g}", low)
                                   : fmt::format("{:.3g}-{:.3g}", low, high);
}

std::string links_text(const Span& span, std::string_view where) {
  if (!span.any) return {};
  return fmt::format("  links {}: {} us, {} GB/s\n", where,
                     range(span.least.latency_us, span.most.latency_us),
                     range(1e-3 / span.most.us_per_byte, 1e-3 / span.least.us_per_byte));
}

std::string machine_text(const Machine& machine) {
  Span within, between;
  for (uint32_t from = 0; from < machine.ranks; from++)
    for (uint32_t to = 0; to < machine.ranks; to++)
      if (from != to)
        (machine.node[from] == machine.node[to] ? within : between)
            .add(machine.links[size_t{from} * machine.ranks + to]);
  const uint32_t nodes =
      machine.node.empty() ? 0 : *std::max_element(machine.node.begin(), machine.node.end()) + 1;
  std::string text = fmt::format("  {} rank{} on {} node{} of {} core{}\n", machine.ranks,
                                 machine.ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
                                 machine.cores_of_node, machine.cores_of_node == 1 ? "" : "s");
  text += links_text(within, "within a node") + links_text(between, "between nodes");
  return text + fmt::format(
                    "  copy {:.3g} GB/s, reduce {:.3g} GB/s, step {:.3g} us, hand-over "
                    "{:.3g} us, cache {}\n",
                    1e-3 / machine.copy_us_per_byte, 1e-3 / machine.reduce_us_per_byte,
                    machine.step_us, machine.handover_us,
                    size_text(static_cast<uint64_t>(machine.cache_bytes)));
}

std::string settings_text(const Inputs& inputs) {
  std::string said;
  for (const Wish& wish : inputs.wishes)
    said += fmt::format(" algorithm {}{}{}", wish.collective ? name(*wish.collective) : "",
                        wish.collective ? "=" : "", wish.algorithm);
  if (inputs.tile_bytes > 0) said += fmt::format(" tile {}", size_text(inputs.tile_bytes));
  if (inputs.window > 0) said += fmt::format(" window {}", inputs.window);
  if (!inputs.rules.rules.empty())
    said += fmt::format(" rules {} of {}", inputs.rules.rules.size(), inputs.rules.file);
  return said.empty() ? said : fmt::format("  settings:{}\n", said);
}

uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value);
}

}  // namespace

std::string text(const Candidate& candidate) {
  if (candidate.tile_bytes == 0) return std::string(candidate.algorithm->name);
  return fmt::format("{} tile={} window={}", candidate.algorithm->name,
                     size_text(candidate.tile_bytes), candidate.window);
}

std::string explain(const Inputs& inputs, const Request& request, const Plan& plan) {
  const schedule::Shape& shape = request.shape;
  std::string result = fmt::format("{}{} {} {}", name(shape.collective), shape.varied ? "_v" : "",
                                   request.dtype, size_text(message_bytes(request)));
  if (rooted(shape.collective)) result += fmt::format(" root {}", shape.root);
  if (inputs.deterministic) result += ", deterministic";
  result += '\n';
  result += machine_text(inputs.machine);
  result += settings_text(inputs);
  for (const std::string& note : plan.notes) result += fmt::format("  note: {}\n", note);
  result += "  candidates, predicted:\n";
  for (const Candidate& candidate : best_of_each(plan))
    result += fmt::format("  {} {:<44} {:>12.2f} us\n",
                          candidate.algorithm == plan.chosen.algorithm ? "*" : " ", text(candidate),
                          candidate.predicted_us);
  return result + fmt::format("  chosen: {} ({})\n", text(plan.chosen), plan.reason);
}

Inputs inputs_from(const Config& config, Machine machine) {
  return {.machine = std::move(machine),
          .tile_bytes = config.tile_bytes,
          .window = config.window,
          .deterministic = config.deterministic,
          .wishes = parse_wishes(config.algorithm),
          .rules = load_rules(config.policy_file)};
}

uint64_t hash(const Inputs& inputs) {
  const Machine& machine = inputs.machine;
  uint64_t hash = hash_bytes(inputs.link, hash_number(machine.ranks));
  for (const Link& link : machine.links)
    for (const double number : {link.latency_us, link.us_per_byte, link.overhead_us})
      hash = hash_number(bits(number), hash);
  for (const uint32_t node : machine.node) hash = hash_number(node, hash);
  for (const uint64_t value :
       {uint64_t{machine.cores_of_node}, bits(machine.handover_us), bits(machine.step_us),
        bits(machine.copy_us_per_byte), bits(machine.reduce_us_per_byte),
        bits(machine.cache_bytes), bits(machine.spill_us_per_byte), inputs.tile_bytes,
        uint64_t{inputs.window}, uint64_t{inputs.deterministic}})
    hash = hash_number(value, hash);
  for (const Wish& wish : inputs.wishes) {
    const uint64_t of = wish.collective ? static_cast<uint64_t>(*wish.collective) : ~uint64_t{0};
    hash = hash_bytes(wish.algorithm, hash_number(of, hash));
  }
  for (const Rule& rule : inputs.rules.rules) hash = hash_bytes(rule.text, hash_number(1, hash));
  return hash;
}

std::vector<Saying> sayings(const Inputs& inputs) {
  std::vector<Saying> all{{"deterministic", inputs.deterministic ? "on" : "off"},
                          {"HCOMM_TILE", std::to_string(inputs.tile_bytes)},
                          {"HCOMM_WINDOW", std::to_string(inputs.window)}};
  for (const Wish& wish : inputs.wishes)
    all.push_back({"HCOMM_ALGO", fmt::format("{}={}",
                                             wish.collective ? schedule::name(*wish.collective)
                                                             : "every collective",
                                             wish.algorithm)});
  for (const Rule& rule : inputs.rules.rules)
    all.push_back({fmt::format("{}:{}", inputs.rules.file, rule.line), rule.text});
  return all;
}

}  // namespace hcomm::policy
