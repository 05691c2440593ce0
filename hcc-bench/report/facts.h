// SPDX-License-Identifier: Apache-2.0
// Where and with what a run was made: for the header of the table and "system" of the machine
// formats.
#pragma once

#include "hcc-bench/options.h"
#include "hcc-bench/report/row.h"
#include "hcc-bench/world.h"

namespace hcomm::bench {

Facts machine_facts();  // what is so without a communicator
Facts collect_facts(const World& world, const Options& options);

}  // namespace hcomm::bench
