// SPDX-License-Identifier: Apache-2.0
#include "comm/plans.h"

#include <fmt/format.h>

#include <bit>
#include <numeric>

#include "algorithm/algorithm.h"
#include "base/bytes.h"
#include "base/log.h"

namespace hcomm::comm {

using schedule::Collective;

namespace {

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }

// Bytes of a block as far as the choice goes: its power of two, so that a communicator meets a
// bounded number of choices.
uint64_t bucket_of(uint64_t bytes) { return bytes <= 1 ? bytes : std::bit_ceil(bytes); }

// The lengths of a V collective where all ranks know them, else null (all-to-all, gather, scatter).
const size_t* known_counts(const Call& call) {
  if (call.collective == Collective::all_gather) return call.recv_blocks.counts;
  if (call.collective == Collective::reduce_scatter) return call.send_blocks.counts;
  return nullptr;
}

// Elements of a block, on average, as far as all ranks know.
uint64_t known_elements(const Call& call, uint32_t ranks) {
  if (!call.varied) return call.count;
  const size_t* counts = known_counts(call);
  return counts == nullptr ? 0 : std::accumulate(counts, counts + ranks, uint64_t{0}) / ranks;
}

}  // namespace

Plans::Plans(policy::Inputs inputs, uint32_t rank, uint32_t ranks)
    : inputs_(std::move(inputs)), rank_(rank), ranks_(ranks) {}

Plans::Found Plans::find_slow(const Call& call, Memo& memo) {
  if (plans_.size() > kMostPlans) {  // rules make a plan for each size: forget, like every rank
    plans_.clear();
    memos_.fill({});
  }
  const std::shared_ptr<const Plan>& plan = choose(call);
  const uint32_t signature = sign(call, *plan);
  if (!call.varied)
    memo = {plan, signature, call.root, call.count, call.cut, call.collective, call.type, call.op,
            call.in_place};
  return {plan, signature};
}

const std::shared_ptr<const Plan>& Plans::choose(const Call& call) {
  // Rules speak of exact sizes.
  const uint64_t exact = known_elements(call, ranks_) * size_of(call.type);
  const uint64_t bytes = inputs_.rules.rules.empty() ? bucket_of(exact) : exact;
  const std::array<uint64_t, 6> key{static_cast<uint64_t>(call.collective), call.varied,
                                    call.in_place, call.root, bytes,
                                    static_cast<uint64_t>(call.type)};
  std::shared_ptr<const Plan>& plan = plans_[key];
  if (plan) return plan;
  const schedule::Shape shape{.collective = call.collective, .varied = call.varied,
                              .in_place = call.in_place, .ranks = ranks_, .rank = rank_,
                              .root = call.root};
  const policy::Request request{.shape = shape, .block_bytes = bytes, .dtype = name(call.type)};
  const policy::Plan chosen = policy::choose(inputs_, request);
  for (const std::string& note : chosen.notes) log(LogLevel::info, "{}", note);
  const policy::Candidate& choice = chosen.chosen;
  if (rank_ == 0)
    log(LogLevel::debug, "{}{} {} {}, {} ranks: {}; predicted {:.2f} us ({})",
        name(call.collective), call.varied ? "_v" : "", request.dtype,
        size_text(policy::message_bytes(request)), ranks_, policy::text(choice),
        choice.predicted_us, chosen.reason);
  auto made = std::make_shared<Plan>();
  made->schedule = algorithm::build(*choice.algorithm, shape);
  made->program = engine::compile(made->schedule);
  made->tile_bytes = choice.tile_bytes;
  made->window = choice.window;
  made->predicted_us = choice.predicted_us;
  made->hash = hash_number(choice.window,
                           hash_number(choice.tile_bytes, schedule::plan_hash(made->schedule)));
  plan = std::move(made);
  return plan;
}

uint32_t Plans::sign(const Call& call, const Plan& plan) const {
  uint64_t hash = plan.hash;
  for (const uint64_t value :
       {static_cast<uint64_t>(call.collective), static_cast<uint64_t>(call.varied),
        static_cast<uint64_t>(call.type), static_cast<uint64_t>(call.root)})
    hash = hash_number(value, hash);
  if (schedule::reduces(call.collective)) hash = hash_number(static_cast<uint64_t>(call.op), hash);
  if (call.cut != 0) hash = hash_number(call.cut, hash);
  if (!call.varied) return low(hash_number(call.count, hash));
  if (const size_t* counts = known_counts(call))
    for (uint32_t i = 0; i < ranks_; i++) hash = hash_number(counts[i], hash);
  return low(hash);
}

std::shared_ptr<const Plan> Plans::exchange(
    const std::vector<std::pair<bool, uint32_t>>& pattern) {
  if (exchanges_.size() > 256) exchanges_.clear();  // a program that never repeats itself
  std::shared_ptr<const Plan>& plan = exchanges_[pattern];
  if (plan) return plan;
  auto fresh = std::make_shared<Plan>();
  schedule::Schedule& made = fresh->schedule;
  made.shape = {.collective = Collective::point_to_point, .ranks = ranks_, .rank = rank_};
  made.algorithm = "direct";
  for (uint32_t i = 0; i < pattern.size(); i++) {
    const schedule::Slice slice{static_cast<uint16_t>(3 + i), 0, 1};
    schedule::Step step;
    step.kind = pattern[i].first ? schedule::StepKind::send : schedule::StepKind::recv;
    (pattern[i].first ? step.a : step.to) = slice;
    step.first_peer = i;
    step.peer_count = 1;
    made.peers.push_back(pattern[i].second);
    made.steps.push_back(step);
  }
  fresh->program = engine::compile(made);
  fresh->hash = schedule::plan_hash(made);
  plan = std::move(fresh);
  return plan;
}

std::string Plans::explain(const Call& call) {
  const Plan& plan = *choose(call);
  std::string text = fmt::format("{}", plan.schedule.algorithm);
  if (plan.tile_bytes > 0)
    text += fmt::format(" tile={} window={}", size_text(plan.tile_bytes), plan.window);
  return text;
}

}  // namespace hcomm::comm
