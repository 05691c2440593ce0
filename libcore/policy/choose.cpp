// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "datatype/types.h"
#include "policy/policy.h"

namespace hcomm::policy {
namespace {

using algorithm::Algorithm;
using schedule::Schedule;
using schedule::Shape;

// Tiles are whole (0) or one of these, the likelier first; forced ones are what was said.
constexpr uint64_t kTiles[] = {0, 512 * kKiB, 2 * kMiB, 128 * kKiB, 8 * kMiB};
constexpr uint64_t kLeastTile = 4 * kKiB;
constexpr uint32_t kWindows[] = {1, 2, 4};
// What a rank may hold in scratch for one operation in flight.
constexpr uint64_t kScratchBytes = 32 * kMiB;
// Steps of all ranks together that are priced at the first call of a shape, over all tiles of an
// algorithm; and how many steps an algorithm may have to be priced at all.
constexpr uint64_t kStepsOverTiles = 50'000, kStepsPriced = 200'000;
// How much longer a plan may take that has more bytes on their way.
constexpr double kSameTime = 1.02;
// All ranks must choose alike while none knows the others' counts of a V collective.
constexpr uint64_t kVariedBlockBytes = 64 * kKiB;

uint64_t block_bytes_of(const Request& request) {
  return request.shape.varied ? kVariedBlockBytes : request.block_bytes;
}

// The chunks of scratch of the rank that has most, in blocks.
double scratch_blocks(const std::vector<Schedule>& all) {
  size_t most = 0;
  for (const Schedule& schedule : all) {
    const auto holds_data = [](const schedule::Slice& mirrored) {
      return mirrored.buffer != schedule::kNothing;
    };
    most =
        std::max<size_t>(most, static_cast<size_t>(std::count_if(
                                   schedule.scratch.begin(), schedule.scratch.end(), holds_data)));
  }
  return static_cast<double>(most) / all[0].parts;
}

class Choice {
 public:
  Choice(const Inputs& inputs, const Request& request);
  Plan make();

 private:
  bool holds(const Condition& condition) const;
  bool holds(const Rule& rule) const;
  const Rule* best_rule(bool (*speaks)(const Rule&)) const;
  bool wished(Plan& plan);
  bool ruled(Plan& plan);
  bool admits(const Algorithm& algorithm) const;
  bool small_enough(const Algorithm& algorithm) const;
  void offer_all(Plan& plan);
  void offer(const Algorithm& algorithm, Plan& plan) const;
  void deepen(Plan& plan) const;
  std::vector<Candidate> shapes_of(const Algorithm& algorithm,
                                   const std::vector<Schedule>& all) const;
  std::string admitted() const;

  const Inputs& inputs_;
  const Request& request_;
  Shape shape_;
  uint64_t block_bytes_;
  uint64_t tile_bytes_;  // said, 0: not
  uint32_t window_;      // said, 0: not
};

Choice::Choice(const Inputs& inputs, const Request& request)
    : inputs_(inputs),
      request_(request),
      shape_(request.shape),
      block_bytes_(block_bytes_of(request)),
      tile_bytes_(inputs.tile_bytes),
      window_(inputs.window) {
  shape_.rank = 0;
  shape_.in_place = false;
}

bool Choice::holds(const Condition& condition) const {
  uint64_t value = 0;
  switch (condition.subject) {
    case Subject::collective:
      value = static_cast<uint64_t>(shape_.collective);
      break;
    case Subject::ranks:
      value = shape_.ranks;
      break;
    case Subject::size:
      if (shape_.varied) return false;  // known to each pair alone
      value = message_bytes(request_);
      break;
    case Subject::dtype: {
      const std::optional<Type> type = type_named(request_.dtype);
      if (!type) return false;
      value = static_cast<uint64_t>(*type);
      break;
    }
    case Subject::link:  // where several join the ranks it is none of those that rules name
      value = static_cast<uint64_t>(
          std::find(std::begin(kLinks), std::end(kLinks), inputs_.link) - std::begin(kLinks));
  }
  switch (condition.comparison) {
    case Comparison::equal:
      return value == condition.number;
    case Comparison::unequal:
      return value != condition.number;
    case Comparison::less:
      return value < condition.number;
    case Comparison::at_most:
      return value <= condition.number;
    case Comparison::greater:
      return value > condition.number;
    case Comparison::at_least:
      return value >= condition.number;
  }
  return false;
}

bool Choice::holds(const Rule& rule) const {
  return std::all_of(rule.conditions.begin(), rule.conditions.end(),
                     [&](const Condition& condition) { return holds(condition); });
}

const Rule* Choice::best_rule(bool (*speaks)(const Rule&)) const {
  const Rule* best = nullptr;
  for (const Rule& rule : inputs_.rules.rules)
    if (speaks(rule) && (best == nullptr || rule.priority > best->priority) && holds(rule))
      best = &rule;
  return best;
}

bool Choice::admits(const Algorithm& algorithm) const {
  if (algorithm.collective != shape_.collective || !algorithm.fits(shape_)) return false;
  return !inputs_.deterministic || !reduces(shape_.collective) ||
         algorithm.order == schedule::Order::rank;
}

std::string Choice::admitted() const {
  std::string names;
  for (const Algorithm& algorithm : algorithm::all())
    if (admits(algorithm)) names += fmt::format("{}{}", names.empty() ? "" : " ", algorithm.name);
  return names;
}

// HCOMM_ALGO. What it says of this collective must be possible; what it says of all collectives
// holds where it is.
bool Choice::wished(Plan& plan) {
  const Wish* wish = nullptr;
  for (const Wish& each : inputs_.wishes)
    if (each.collective ? *each.collective == shape_.collective : wish == nullptr) wish = &each;
  if (wish == nullptr) return false;
  const std::string said =
      wish->collective ? fmt::format("HCOMM_ALGO={}={}", name(*wish->collective), wish->algorithm)
                       : fmt::format("HCOMM_ALGO={}", wish->algorithm);
  const Algorithm* algorithm = algorithm::find(shape_.collective, wish->algorithm);
  if (algorithm != nullptr && admits(*algorithm)) {
    offer(*algorithm, plan);
    plan.reason = said;
    return true;
  }
  const bool against_order = algorithm != nullptr && algorithm->fits(shape_);
  if (wish->collective || against_order)
    fail(Code::unsupported, "{}: {} of {} ranks cannot run it{}{}; it can run: {}", said,
         name(shape_.collective), shape_.ranks, shape_.varied ? " with varied counts" : "",
         against_order ? " in deterministic mode (rank order)" : "", admitted());
  plan.notes.push_back(fmt::format("{} is not for {}", said, name(shape_.collective)));
  return false;
}

bool Choice::ruled(Plan& plan) {
  const Rule* rule = best_rule([](const Rule& each) { return !each.algorithm.empty(); });
  if (rule == nullptr) return false;
  const std::string said = fmt::format("{}:{}", inputs_.rules.file, rule->line);
  const Algorithm* algorithm = algorithm::find(shape_.collective, rule->algorithm);
  if (algorithm == nullptr || !admits(*algorithm)) {
    plan.notes.push_back(fmt::format("{} names {}, which cannot run here; it can run: {}", said,
                                     rule->algorithm, admitted()));
    return false;
  }
  offer(*algorithm, plan);
  plan.reason = fmt::format("{} ({})", said, rule->text);
  return true;
}

bool Choice::small_enough(const Algorithm& algorithm) const {
  // Ranks do about the same, so one of them tells; the middle one is a root of nothing.
  Shape shape = shape_;
  shape.rank = shape_.ranks / 2;
  const uint64_t steps = algorithm::build(algorithm, shape).steps.size();
  return steps * shape_.ranks <= kStepsPriced;
}

void Choice::offer_all(Plan& plan) {
  const Algorithm* first = nullptr;
  size_t admitted_count = 0;
  for (const Algorithm& algorithm : algorithm::all()) {
    if (!admits(algorithm)) continue;
    admitted_count++;
    if (first == nullptr) first = &algorithm;
    if (small_enough(algorithm))
      offer(algorithm, plan);
    else
      plan.notes.push_back(fmt::format("{} has too many steps to be priced", algorithm.name));
  }
  if (first == nullptr)
    fail(Code::unsupported, "no algorithm runs {} of {} ranks{}", name(shape_.collective),
         shape_.ranks, inputs_.deterministic ? " in rank order" : "");
  if (plan.candidates.empty()) offer(*first, plan);
  plan.reason = admitted_count == 1 ? "the only algorithm" : "least predicted time";
}

// Every tile and window to price, the scratch of all tiles in flight within bounds.
std::vector<Candidate> Choice::shapes_of(const Algorithm& algorithm,
                                         const std::vector<Schedule>& all) const {
  const uint32_t forced = window_;
  if (tile_bytes_ > 0 && tile_bytes_ >= block_bytes_)
    return {{&algorithm, 0, std::max(forced, 1u)}};
  if (tile_bytes_ > 0 && forced > 0) return {{&algorithm, tile_bytes_, forced}};
  const double scratch = scratch_blocks(all);
  uint64_t steps = 0, spent = 0;
  for (const Schedule& schedule : all) steps += schedule.steps.size();
  std::vector<Candidate> shapes;
  const std::span<const uint64_t> tiles =
      tile_bytes_ > 0 ? std::span(&tile_bytes_, 1) : std::span(kTiles);
  for (const uint64_t tile : tiles) {
    if (tile >= block_bytes_ && tile > 0) continue;
    if (!shapes.empty() && spent + steps > kStepsOverTiles) break;
    const double bytes = scratch * static_cast<double>(tile == 0 ? block_bytes_ : tile);
    for (const uint32_t window : kWindows) {
      if (window > 1 && (tile == 0 || forced > 0)) break;
      const uint32_t in_flight = forced > 0 ? forced : window;
      if (bytes * (tile == 0 ? 1 : in_flight) <= kScratchBytes)
        shapes.push_back({&algorithm, tile, in_flight});
    }
    spent += steps;
  }
  if (!shapes.empty()) return shapes;
  const auto room = static_cast<uint64_t>(static_cast<double>(kScratchBytes) / scratch);
  const uint64_t tile = tile_bytes_ > 0 ? tile_bytes_ : std::max(kLeastTile, std::bit_floor(room));
  return {{&algorithm, tile < block_bytes_ ? tile : 0, std::max(forced, 1u)}};
}

void Choice::offer(const Algorithm& algorithm, Plan& plan) const {
  const std::vector<Schedule> all = algorithm::build_all(algorithm, shape_);
  schedule::Pricer pricer(all, inputs_.machine);
  for (Candidate candidate : shapes_of(algorithm, all)) {
    candidate.predicted_us =
        pricer.predict_us({block_bytes_, candidate.tile_bytes, candidate.window});
    candidate.bound_by_links = pricer.bound_by_links();
    if (plan.chosen.algorithm == nullptr || candidate.predicted_us < plan.chosen.predicted_us)
      plan.chosen = candidate;
    plan.candidates.push_back(candidate);
  }
}

// Of the same algorithm: measured on 4 hosts at 1 Gbit/s whose ranks share 2 cores and compute, 16
// MiB by tiles of 128 KiB, 2 in flight, hide nothing behind the computation, by 1 MiB, 4, half.
void Choice::deepen(Plan& plan) const {
  const auto in_flight = [&](const Candidate& candidate) {
    return candidate.tile_bytes == 0 ? block_bytes_ : candidate.tile_bytes * candidate.window;
  };
  const Candidate best = plan.chosen;
  if (!best.bound_by_links) return;
  for (const Candidate& each : plan.candidates)
    if (each.algorithm == best.algorithm && each.predicted_us <= best.predicted_us * kSameTime &&
        in_flight(each) > in_flight(plan.chosen))
      plan.chosen = each;
  if (in_flight(plan.chosen) > in_flight(best)) plan.reason += ", most on its way";
}

Plan Choice::make() {
  Plan plan;
  const auto sets = [&](const Rule& rule, std::string_view what) {
    plan.notes.push_back(fmt::format("{}:{} sets the {}", inputs_.rules.file, rule.line, what));
  };
  if (tile_bytes_ == 0)
    if (const Rule* rule = best_rule([](const Rule& each) { return each.tile_bytes > 0; })) {
      tile_bytes_ = rule->tile_bytes;
      sets(*rule, "tile");
    }
  if (window_ == 0)
    if (const Rule* rule = best_rule([](const Rule& each) { return each.window > 0; })) {
      window_ = rule->window;
      sets(*rule, "window");
    }
  if (!wished(plan) && !ruled(plan)) offer_all(plan);
  deepen(plan);
  return plan;
}

}  // namespace

uint64_t message_bytes(const Request& request) {
  Shape shape = request.shape;
  shape.rank = shape.root;  // where both buffers are
  const uint64_t blocks =
      std::max(blocks_of(shape, schedule::kInput), blocks_of(shape, schedule::kOutput));
  return blocks * request.block_bytes;
}

Plan choose(const Inputs& inputs, const Request& request) {
  HCOMM_CHECK(inputs.machine.ranks == request.shape.ranks, "{} {}", inputs.machine.ranks,
              request.shape.ranks);
  return Choice(inputs, request).make();
}

}  // namespace hcomm::policy
