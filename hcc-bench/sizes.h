// SPDX-License-Identifier: Apache-2.0
// The grammar of --sizes: a list of sizes and sweeps.
//   1K:1G       doubling from 1 KiB to 1 GiB, both included
//   1K:1G:x4    by factors of four
//   1M:64M:+1M  by steps of 1 MiB
//   8,64K,1M    these
// K M G and KiB MiB GiB are 1024, kB MB GB are 1000.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace hcomm::bench {

// In the order given, each size once. Throws invalid_argument: an empty list, a sweep that ends
// before it begins, from zero by factors, or that does not advance, more than 65,536 sizes.
std::vector<size_t> parse_sizes(std::string_view text);

}  // namespace hcomm::bench
