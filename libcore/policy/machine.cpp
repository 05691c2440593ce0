// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/policy.h"

namespace hcomm::policy {

schedule::Machine default_machine(uint32_t ranks, uint32_t ranks_per_node, uint32_t cores_of_node) {
  constexpr schedule::Link kSharedMemory{.latency_us = 0.15, .us_per_byte = 1 / 8e3};
  constexpr schedule::Link kEthernet{.latency_us = 15, .us_per_byte = 8 / 25e3};
  schedule::Machine machine{.ranks = ranks, .cores_of_node = std::max(cores_of_node, 1u)};
  machine.handover_us = 1.4;  // sched_yield from one thread to the next on a core
  machine.step_us = 0.03;
  machine.copy_us_per_byte = 1 / 13e3;
  machine.reduce_us_per_byte = 1 / 9e3;
  machine.cache_bytes = 32 << 20;
  for (uint32_t rank = 0; rank < ranks; rank++)
    machine.node.push_back(rank / std::max(ranks_per_node, 1u));
  machine.links.reserve(size_t{ranks} * ranks);
  for (uint32_t from = 0; from < ranks; from++)
    for (uint32_t to = 0; to < ranks; to++)
      machine.links.push_back(machine.node[from] == machine.node[to] ? kSharedMemory : kEthernet);
  return machine;
}

}  // namespace hcomm::policy
