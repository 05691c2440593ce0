// SPDX-License-Identifier: Apache-2.0
// How each launcher tells a process its rank, in the order in which they count: hcc-launch,
// torchrun, Open MPI, PMI (MPICH, Slurm), Slurm itself. Used by comm/control/job.cpp, which joins
// the job, and by the tools, which must not see another one.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace hcomm {

struct Launcher {
  using Names = std::array<std::string_view, 2>;  // the first that is set counts
  std::string_view name;                          // "hcc-launch"
  std::string_view rank;
  Names size, local_rank, local_size, job_id;
  std::string_view condition;  // the variable without which the others say nothing; "": none
};

// The launcher that started a process of this environment: the first whose rank or size is set.
// nullptr: none.
const Launcher* launcher_of(std::span<const char* const> environment);

}  // namespace hcomm
