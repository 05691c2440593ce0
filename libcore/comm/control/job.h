// SPDX-License-Identifier: Apache-2.0
// Which job started this process, and where its ranks meet. hcc-launch's variables win, then
// torchrun's, Open MPI's, those of PMI (MPICH, Slurm) and Slurm's own; without any the job has one
// rank. Used by the Runtime for hcommCommInitWorld. Absent: joining (Control does that).
//
// Where they meet: HCOMM_ROOT; else MASTER_ADDR with the port after MASTER_PORT (torchrun's own
// store has that one); else rank 0's address through PMI-1 or PMIx; else, without any of them, the
// first Slurm node, or loopback where all ranks are on this host, at a port made from the job's id.
// Without a secret (HCOMM_SECRET, HCOMM_SECRET_FILE, or an address that came through PMI) the root
// must be a loopback address.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/config.h"
#include "comm/control/hub.h"
#include "comm/control/rendezvous.h"
#include "comm/control/service.h"

namespace hcomm::comm {

struct Job {
  int rank = 0, size = 1, local_rank = 0, local_size = 1;
  std::string source = "none";  // "hcc-launch", "torchrun", "Open MPI", "PMI", "Slurm"
  enum class Way : uint8_t { alone, root, pmi1, pmix } way = Way::alone;
  std::string root;  // address:port, for Way::root
  int root_fd = -1;  // a listening socket, for rank 0
  int pmi_fd = -1;   // for Way::pmi1
  std::string secret, job_id;
};

// `environment` as process_environment() has it. Throws Error(invalid_argument) that names the
// variables that do not fit together, Error(unavailable) where the ranks have no way to meet.
Job find_job(const Config& config, std::span<const char* const> environment);

// What a process keeps of its job: rank 0's hub and where it is. The hub serves one world after the
// other: the next may be joined when all ranks have left the last.
struct Meeting {
  std::unique_ptr<Hub> hub;  // rank 0 only
  std::optional<Root> root;
};
// Finds the root; in rank 0 makes the hub. All ranks call; what a former call has found stays.
// Throws Error.
const Root& meet(Service& service, const Config& config, const Job& job, Meeting& meeting,
                 Deadline deadline);

// "node[07-12,20],other" -> "node07". For Slurm.
std::string first_node(std::string_view list);

}  // namespace hcomm::comm
