// SPDX-License-Identifier: Apache-2.0
// Each part is a plan. What is needed first has the highest priority: each priority is a virtual
// communicator, whose sums hold up those of the lower ones.
#include <algorithm>

#include "hcomm/hcomm.hpp"
#include "team.h"

namespace train {

namespace {

constexpr size_t kPriorities = 3;

hcomm::Communicator join_world(const Options& options) {
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  config.deterministic = options.deterministic;
  return hcomm::Communicator::world(&config);
}

class HcommTeam : public Team {
 public:
  explicit HcommTeam(const Options& options) : world_(join_world(options)) {}

  std::string_view library() const override { return "HCOMM"; }
  size_t rank() const override { return static_cast<size_t>(world_.rank()); }
  size_t size() const override { return static_cast<size_t>(world_.size()); }
  void broadcast(std::span<float> data) override { world_.broadcast(data, 0); }
  void add(std::span<double> sums) override { world_.all_reduce(sums); }

  void prepare(const std::vector<std::span<float>>& parts) override {
    const size_t priorities = std::min(parts.size(), kPriorities);
    for (size_t priority = 0; priority < priorities; priority++) {
      hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
      config.priority = static_cast<int>(priority + 1);
      by_priority_.push_back(world_.make_virtual("gradients", &config));
    }
    for (size_t part = 0; part < parts.size(); part++) {
      hcomm::Communicator& comm = by_priority_[priorities - 1 - part * priorities / parts.size()];
      plans_.emplace_back([&] { comm.all_reduce(parts[part]); });
    }
  }
  void start(size_t part) override { plans_[part].start(); }
  void progress() override { hcomm::require(hcommProgress(nullptr)); }
  void wait(size_t part) override { plans_[part].wait(); }

 private:
  hcomm::Communicator world_;
  std::vector<hcomm::Communicator> by_priority_;
  std::vector<hcomm::Plan> plans_;
};

}  // namespace

std::unique_ptr<Team> join_team(const Options& options) {
  return std::make_unique<HcommTeam>(options);
}

}  // namespace train
