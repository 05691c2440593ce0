// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/overlap/motion.h"

#include "hcc-bench/world.h"

namespace hcomm::bench::overlap {

namespace {

bool ended(hcommResult_t state, hcommComm_t comm, std::string_view what) {
  if (state == hcommInProgress) return false;
  require(state, comm, what);
  return true;
}

// The worker of a stream moves it.
class OnStream : public Motion {
 public:
  OnStream(const Call& call, const Layout& layout, const Place& place)
      : call_(call), layout_(layout), place_(place) {
    require(hcommStreamCreate(&call_.stream, nullptr), call.comm, "make a stream");
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;
  ~OnStream() override { hcommStreamDestroy(call_.stream); }

  void start() override { require(run(call_, layout_, place_), call_.comm, "start"); }
  void progress() override {}
  bool done() override { return ended(hcommStreamQuery(call_.stream), call_.comm, "ask a stream"); }
  void wait() override {
    require(hcommStreamSynchronize(call_.stream), call_.comm, "wait for a stream");
  }

 private:
  Call call_;
  const Layout& layout_;
  Place place_;
};

// The caller moves it.
class OfPlan : public Motion {
 public:
  OfPlan(const Call& call, const Layout& layout, const Place& place) : comm_(call.comm) {
    require(hcommGroupStart(), comm_, "begin a plan");
    const hcommResult_t called = run(call, layout, place);
    const hcommResult_t made = hcommPlanCreate(&plan_);  // ends the group in every case
    if (called != hcommSuccess) hcommPlanDestroy(plan_);
    require(called != hcommSuccess ? called : made, comm_, "make a plan");
  }
  OfPlan(const OfPlan&) = delete;
  OfPlan& operator=(const OfPlan&) = delete;
  ~OfPlan() override { hcommPlanDestroy(plan_); }

  void start() override { require(hcommPlanStart(plan_), comm_, "start"); }
  void progress() override { require(hcommProgress(nullptr), comm_, "progress"); }
  bool done() override { return ended(hcommPlanQuery(plan_), comm_, "ask a plan"); }
  void wait() override { require(hcommPlanWait(plan_), comm_, "wait for a plan"); }

 private:
  hcommComm_t comm_;
  hcommPlan_t plan_ = nullptr;
};

}  // namespace

std::unique_ptr<Motion> make_motion(std::string_view progress, const Call& call,
                                    const Layout& layout, const Place& place) {
  if (progress == "plan") return std::make_unique<OfPlan>(call, layout, place);
  return std::make_unique<OnStream>(call, layout, place);
}

}  // namespace hcomm::bench::overlap
