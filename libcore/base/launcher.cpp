// SPDX-License-Identifier: Apache-2.0
#include "base/launcher.h"

#include <algorithm>

#include "base/config.h"

namespace hcomm {

namespace {

constexpr Launcher kLaunchers[] = {
    {.name = "hcc-launch",
     .rank = "HCOMM_RANK",
     .size = {"HCOMM_SIZE"},
     .local_rank = {"HCOMM_LOCAL_RANK"},
     .local_size = {"HCOMM_LOCAL_SIZE"},
     .job_id = {"HCOMM_JOB_ID"},
     .condition = ""},
    {.name = "torchrun",
     .rank = "RANK",
     .size = {"WORLD_SIZE"},
     .local_rank = {"LOCAL_RANK"},
     .local_size = {"LOCAL_WORLD_SIZE"},
     .job_id = {"TORCHELASTIC_RUN_ID"},
     .condition = ""},
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = {"OMPI_COMM_WORLD_SIZE"},
     .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
     .local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     .job_id = {"PMIX_NAMESPACE"},
     .condition = ""},
    {.name = "PMI",
     .rank = "PMI_RANK",
     .size = {"PMI_SIZE"},
     .local_rank = {"MPI_LOCALRANKID", "SLURM_LOCALID"},
     .local_size = {"MPI_LOCALNRANKS"},
     .job_id = {"PMI_ID", "SLURM_JOB_ID"},
     .condition = ""},
    // A batch script has SLURM_PROCID and SLURM_NTASKS too, but is no step of several tasks.
    {.name = "Slurm",
     .rank = "SLURM_PROCID",
     .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local_rank = {"SLURM_LOCALID"},
     .local_size = {},
     .job_id = {"SLURM_JOB_ID"},
     .condition = "SLURM_STEP_ID"},
};

}  // namespace

const Launcher* launcher_of(std::span<const char* const> environment) {
  const auto is_set = [&](std::string_view name) { return !value_of(environment, name).empty(); };
  for (const Launcher& each : kLaunchers) {
    if (!each.condition.empty() && !is_set(each.condition)) continue;
    if (is_set(each.rank) || std::any_of(each.size.begin(), each.size.end(), is_set)) return &each;
  }
  return nullptr;
}

}  // namespace hcomm
