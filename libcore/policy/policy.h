// SPDX-License-Identifier: Apache-2.0
// The choice of a plan: which algorithm, in tiles of what size, how many in flight. Pure: the same
// Inputs and Request give the same Plan on every rank, so ranks exchange hash(inputs) once, at
// init, and nothing per call. Called by comm and tools, who keep what was chosen per shape and
// size. Absent: anything known to one rank only (where a buffer lies, in place, the rank itself).
//
// What is said beats what is computed: HCOMM_ALGO, then policy.conf, then the least predicted time.
// Where the links between nodes decide, of the tiles of about that time those are taken that keep
// most bytes on their way: ranks that compute meanwhile, or share a core, are often late.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.h"
#include "base/config.h"
#include "policy/rules.h"
#include "schedule/cost.h"

namespace hcomm::policy {

struct Inputs {
  schedule::Machine machine;
  std::string link;            // the transport that joins all ranks; "": several do
  uint64_t tile_bytes = 0;     // 0: chosen
  uint32_t window = 0;         // 0: chosen
  bool deterministic = false;  // reductions only by algorithms of Order::rank
  std::vector<Wish> wishes;
  Rules rules;
};
// What the configuration says, over that machine. Reads the policy file. Throws invalid_argument.
Inputs inputs_from(const Config& config, schedule::Machine machine);
// Of all that the choice depends on.
uint64_t hash(const Inputs& inputs);
// What people have said of it, for ranks whose hashes differ: "HCOMM_TILE" "4194304";
// "/etc/hcomm/policy.conf:7" "match ranks=8 -> algorithm=ring". Only the text counts.
struct Saying {
  std::string place, text;
};
std::vector<Saying> sayings(const Inputs& inputs);

struct Request {
  schedule::Shape shape;     // rank and in_place do not matter
  uint64_t block_bytes = 0;  // of one block; of a V collective it does not matter
  std::string_view dtype = "float32";
};
// The larger of a rank's two buffers, as nccl-tests counts a message; what rules call size.
uint64_t message_bytes(const Request& request);

struct Candidate {
  const algorithm::Algorithm* algorithm = nullptr;
  uint64_t tile_bytes = 0;  // of a block; 0: one tile
  uint32_t window = 1;
  double predicted_us = 0;
  bool bound_by_links = false;  // it waits for the links between nodes, not for processors
};

struct Plan {
  Candidate chosen;
  std::string reason;                 // "least predicted time", "HCOMM_ALGO=ring", "policy.conf:7"
  std::vector<Candidate> candidates;  // all that were priced
  std::vector<std::string> notes;     // what was said and not followed, and why
};

// Throws unsupported when what was asked for cannot run this shape, naming what can.
Plan choose(const Inputs& inputs, const Request& request);

std::string text(const Candidate& candidate);  // "ring tile=512KiB window=4"
// Several lines for people: what the choice depends on, every candidate's best time, what decided.
std::string explain(const Inputs& inputs, const Request& request, const Plan& plan);

// A machine of nominal numbers, where none was measured: ranks in blocks of ranks_per_node. Within
// a node shared memory at 0.15 us and 8 GB/s, between nodes 25 Gbit/s Ethernet at 15 us.
schedule::Machine default_machine(uint32_t ranks, uint32_t ranks_per_node, uint32_t cores_of_node);

}  // namespace hcomm::policy
