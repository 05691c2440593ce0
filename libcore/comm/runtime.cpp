// SPDX-License-Identifier: Apache-2.0
#include "comm/runtime.h"

#include "base/log.h"
#include "datatype/kernels.h"

namespace hcomm::comm {

Runtime::Runtime() : config_(Config::from_env()), memory_(config_.huge_pages) {
  log_setup(config_.log_level, config_.log_file, config_.rank);
  if (!config_.kernels.empty()) select_kernels(config_.kernels);
}

std::shared_ptr<trace::Recorder> Runtime::recorder(uint32_t rank, uint32_t ranks) {
  const std::lock_guard lock(mutex_);
  if (!recorder_) {
    const bool of_job = config_.rank == static_cast<int>(rank);
    recorder_ = std::make_shared<trace::Recorder>(of_job ? config_.recorder_fd : -1, rank, ranks);
  }
  return recorder_;
}

void Runtime::keep(std::unique_ptr<Hub> hub) {
  std::list<std::unique_ptr<Hub>> over;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (auto each = hubs_.begin(); each != hubs_.end();) {
    const auto next = std::next(each);
    if ((*each)->over()) over.splice(over.end(), hubs_, each);
    each = next;
  }
  hubs_.push_back(std::move(hub));
}

Root Runtime::meet(const Job& job, Deadline deadline) {
  const std::lock_guard lock(meeting_mutex_);
  return comm::meet(service_, config_, job, meeting_, deadline);
}

void Runtime::end_hubs() {
  std::list<std::unique_ptr<Hub>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending.swap(hubs_);
  }
  const std::lock_guard lock(meeting_mutex_);
  const Deadline deadline = Hub::goodbyes_end();  // of all of them together
  for (const auto& hub : ending) hub->await_goodbyes(deadline);
  if (meeting_.hub) meeting_.hub->await_goodbyes(deadline);
  meeting_.hub.reset();
}

}  // namespace hcomm::comm
