// SPDX-License-Identifier: Apache-2.0
// The same by MPI, as its users do it: each part is an MPI_Iallreduce, moved by MPI_Testsome. MPI
// has no priorities. Its errors end the job (MPI_ERRORS_ARE_FATAL).
#include <mpi.h>

#include <stdexcept>

#include "team.h"

namespace train {

namespace {

class MpiTeam : public Team {
 public:
  MpiTeam() { MPI_Init(nullptr, nullptr); }
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;
  ~MpiTeam() override { MPI_Finalize(); }

  std::string_view library() const override { return "MPI"; }
  size_t rank() const override { return ask(MPI_Comm_rank); }
  size_t size() const override { return ask(MPI_Comm_size); }
  void broadcast(std::span<float> data) override {
    MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void add(std::span<double> sums) override {
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
  }

  void prepare(const std::vector<std::span<float>>& parts) override {
    parts_ = parts;
    running_.assign(parts.size(), MPI_REQUEST_NULL);
    ended_.resize(parts.size());
  }
  void start(size_t part) override {
    const std::span<float> data = parts_[part];
    MPI_Iallreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &running_[part]);
  }
  void progress() override {
    int ended = 0;
    MPI_Testsome(static_cast<int>(running_.size()), running_.data(), &ended, ended_.data(),
                 MPI_STATUSES_IGNORE);
  }
  void wait(size_t part) override { MPI_Wait(&running_[part], MPI_STATUS_IGNORE); }

 private:
  static size_t ask(int (*call)(MPI_Comm, int*)) {
    int number = 0;
    call(MPI_COMM_WORLD, &number);
    return static_cast<size_t>(number);
  }

  std::vector<std::span<float>> parts_;
  std::vector<MPI_Request> running_;
  std::vector<int> ended_;
};

}  // namespace

std::unique_ptr<Team> join_team(const Options& options) {
  if (options.deterministic) throw std::invalid_argument("--deterministic: MPI does not offer it");
  return std::make_unique<MpiTeam>();
}

}  // namespace train
