// SPDX-License-Identifier: Apache-2.0
// The proofs that check() puts together, each in a file of its own; each throws Fault. Internal to
// check. The first proof, that messages match, is the making of a Whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/whole.h"

namespace hcomm::schedule {

// Proof 2. No deadlock; gives the order in which one tile may run: each step once, sends when they
// start, all others when they are done.
std::vector<uint32_t> order_of(const Whole& whole, uint32_t credits, uint32_t tiles);
// Proof 3. No two steps of a rank race for memory.
void check_races(const Whole& whole);
// Proof 4. What every output chunk holds after `order`, as expression trees; for a barrier, who is
// known to have come before anybody leaves.
void check_meaning(const Whole& whole, std::span<const uint32_t> order);
void check_barrier(const Whole& whole, std::span<const uint32_t> order);

}  // namespace hcomm::schedule
