// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/binding.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"

namespace hcomm::launch {

namespace {

constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
constexpr uint32_t kMaxCore = 1 << 16;

// hwloc 2.9 aborts the process where a container shows an empty folder of NUMA nodes.
bool topology_hidden() {
  std::error_code error;
  const std::filesystem::directory_iterator nodes("/sys/devices/system/node", error), end;
  if (error) return false;
  return std::none_of(nodes, end, [](const auto& entry) {
    return entry.path().filename().string().starts_with("node");
  });
}

// Each core by itself, all of one node.
std::vector<Cores> units_without_topology(Unit unit, const Cores& allowed) {
  if (unit == Unit::numa) return {allowed};
  std::vector<Cores> units;
  for (const uint32_t core : allowed) units.push_back({core});
  return units;
}

struct TopologyEnd {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyEnd>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) fail_system(errno, "prepare to read the machine's topology");
  Topology topology(raw);
  // Cores and memory are all that binding needs: devices would only take time.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) fail_system(errno, "read the machine's topology");
  return topology;
}

}  // namespace

Cores cores_of(pid_t pid) {
  for (size_t words = 1024 / kWordBits;; words *= 2) {
    std::vector<unsigned long> mask(words);
    const size_t bytes = words * sizeof(unsigned long);
    if (sched_getaffinity(pid, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      if (errno == EINVAL && words * kWordBits < kMaxCore) continue;  // the kernel's mask is longer
      return {};
    }
    Cores cores;
    for (uint32_t core = 0; core < words * kWordBits; core++)
      if (mask[core / kWordBits] >> core % kWordBits & 1) cores.push_back(core);
    return cores;
  }
}

std::vector<unsigned long> mask_of(const Cores& cores) {
  std::vector<unsigned long> mask;
  if (cores.empty()) return mask;
  mask.resize(cores.back() / kWordBits + 1);
  for (const uint32_t core : cores) mask[core / kWordBits] |= 1ul << core % kWordBits;
  return mask;
}

std::vector<Cores> units_of(Unit unit, const Cores& allowed) {
  if (topology_hidden()) return units_without_topology(unit, allowed);
  const Topology topology = load_topology();
  const hwloc_obj_type_t type = unit == Unit::core ? HWLOC_OBJ_CORE : HWLOC_OBJ_NUMANODE;
  std::vector<Cores> units;
  Cores placed;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology.get(), type, object)) != nullptr;) {
    Cores cores;
    for (const uint32_t core : allowed)
      if (hwloc_bitmap_isset(object->cpuset, core) != 0) cores.push_back(core);
    if (cores.empty()) continue;
    placed.insert(placed.end(), cores.begin(), cores.end());
    units.push_back(std::move(cores));
  }
  std::sort(placed.begin(), placed.end());
  return placed == allowed ? units : units_without_topology(unit, allowed);
}

std::vector<Cores> divide(const std::vector<Cores>& units, uint32_t ranks) {
  std::vector<Cores> shares(ranks);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const size_t first = units.size() * rank / ranks;
    const size_t end = std::max(units.size() * (rank + 1) / ranks, first + 1);
    for (size_t i = first; i < end; i++)
      shares[rank].insert(shares[rank].end(), units[i].begin(), units[i].end());
    std::sort(shares[rank].begin(), shares[rank].end());
  }
  return shares;
}

}  // namespace hcomm::launch
