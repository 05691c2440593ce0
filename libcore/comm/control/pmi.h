// SPDX-License-Identifier: Apache-2.0
// How the ranks that an MPI launcher or Slurm has started give one another a short text before they
// know any address: PMI-1 over an inherited descriptor (MPICH's hydra, Slurm's pmi2), PMIx through
// libpmix (Open MPI, Slurm's pmix), loaded when it is needed. Used once a process, by the finder of
// jobs. Absent: everything else that these can do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hcomm::comm {

// Rank 0's `text` (no blanks, at most about 1000 characters) reaches all ranks; others give "". All
// ranks call. Throws Error(unavailable | timeout | peer_failed | system).
std::string share_by_pmi1(int fd, uint32_t rank, std::string_view text, Deadline deadline);
std::string share_by_pmix(uint32_t rank, std::string_view text, Deadline deadline);

// "" where libpmix can be loaded, else why not.
std::string pmix_problem();

}  // namespace hcomm::comm
