// SPDX-License-Identifier: Apache-2.0
// The plans of one communicator: for each kind of call the schedule that policy chose, compiled.
// Choosing happens once for a shape and a power of two of bytes; afterwards a call is one lookup.
// The choice depends only on what all ranks agreed on at init and on what all ranks pass.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.h"
#include "engine/program.h"
#include "policy/policy.h"
#include "schedule/schedule.h"

namespace hcomm::comm {

struct Plan {
  schedule::Schedule schedule;
  engine::Program program;
  uint64_t tile_bytes = 0;  // 0: one tile
  uint32_t window = 1;
  uint64_t hash = 0;        // what all ranks must share
  double predicted_us = 0;
};

class Plans {
 public:
  Plans(policy::Inputs inputs, uint32_t rank, uint32_t ranks);

  // The plan of a collective, and the 32 bits by which ranks see that they mean the same call.
  struct Found {
    std::shared_ptr<const Plan> plan;
    uint32_t signature;
  };
  Found find(const Call& call) {
    Memo& memo = memos_[slot_of(call)];
    if (memo.plan != nullptr && same(memo, call)) [[likely]]
      return {memo.plan, memo.signature};
    return find_slow(call, memo);
  }
  // The plan of a group of sends and receives of this rank, in order.
  std::shared_ptr<const Plan> exchange(
      const std::vector<std::pair<bool, uint32_t>>& sends_and_peers);

  std::string explain(const Call& call);
  double predict_us(const Call& call) { return choose(call)->predicted_us; }
  const policy::Inputs& inputs() const { return inputs_; }

 private:
  struct Memo {
    std::shared_ptr<const Plan> plan;
    uint32_t signature = 0, root = 0;
    size_t count = 0;
    uint64_t cut = 0;
    schedule::Collective collective{};
    Type type{};
    Op op{};
    bool in_place = false;
  };
  static size_t slot_of(const Call& call) {
    return (call.count * 31 + static_cast<size_t>(call.collective) * 7 + call.root * 3 +
            static_cast<size_t>(call.type)) % kMemos;
  }
  static bool same(const Memo& memo, const Call& call) {
    return memo.count == call.count && memo.cut == call.cut && memo.collective == call.collective &&
           memo.type == call.type && memo.op == call.op && memo.root == call.root &&
           memo.in_place == call.in_place && !call.varied;
  }
  Found find_slow(const Call& call, Memo& memo);
  const std::shared_ptr<const Plan>& choose(const Call& call);
  uint32_t sign(const Call& call, const Plan& plan) const;

  static constexpr size_t kMemos = 64, kMostPlans = 1024;
  policy::Inputs inputs_;
  uint32_t rank_, ranks_;
  std::array<Memo, kMemos> memos_;
  std::map<std::array<uint64_t, 6>, std::shared_ptr<const Plan>> plans_;
  std::map<std::vector<std::pair<bool, uint32_t>>, std::shared_ptr<const Plan>> exchanges_;
};

}  // namespace hcomm::comm
