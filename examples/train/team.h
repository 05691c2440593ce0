// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, however they talk to each other: over HCOMM (team_hcomm.cpp, the example) or
// over MPI (team_mpi.cpp, to compare with). A program is built with one of them. Errors are thrown.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "options.h"

namespace train {

class Team {
 public:
  virtual ~Team() = default;

  virtual std::string_view library() const = 0;
  virtual size_t rank() const = 0;
  virtual size_t size() const = 0;
  // Rank 0's to all.
  virtual void broadcast(std::span<float> data) = 0;
  // In place, over the ranks.
  virtual void add(std::span<double> sums) = 0;

  // Sums in place that run while their caller computes, again and again. The parts come in the
  // order in which their sums are needed; they are started in one order on all ranks.
  virtual void prepare(const std::vector<std::span<float>>& parts) = 0;
  virtual void start(size_t part) = 0;
  // To be called now and then while sums run.
  virtual void progress() = 0;
  virtual void wait(size_t part) = 0;
};

// The job that started this process; one rank without a launcher.
std::unique_ptr<Team> join_team(const Options& options);

}  // namespace train
