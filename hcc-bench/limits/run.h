// SPDX-License-Identifier: Apache-2.0
// `hcc-bench limits`: measures the sections that were asked for and reports them.
#pragma once

#include "hcc-bench/limits/options.h"

namespace hcomm::bench::limits {

int run(const Options& options);  // the exit code; throws Error

}  // namespace hcomm::bench::limits
