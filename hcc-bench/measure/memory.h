// SPDX-License-Identifier: Apache-2.0
// The memory of this host as a process of it sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hcomm::bench {

// What this process holds, memory that it shares counted by its share.
double resident_mib();

// Bytes that a process of this host could still take: MemAvailable, less where a control group
// allows less.
uint64_t available_bytes();

// What the control group `path` ("/user.slice/a.scope", version 2, mounted at `mount`) and those
// above it leave, each its limit less what it holds and cannot drop. UINT64_MAX: no limit.
uint64_t group_bytes(const std::string& mount, std::string path);

// The largest cache that core 0 has; 32 MiB where the machine does not tell.
size_t last_level_cache_bytes();

}  // namespace hcomm::bench
