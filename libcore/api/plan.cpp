// SPDX-License-Identifier: Apache-2.0
// Plans: the operations of a group, checked, chosen and laid out once, started again and again.
#include <thread>

#include "api/handles.h"
#include "api/together.h"
#include "base/process.h"

using hcomm::Code;
using namespace hcomm::api;

struct hcommPlan {
  // What an item of the group was made with.
  struct Kept {
    explicit Kept(const Group::Item& item);
    hcommComm_t comm;
    std::weak_ptr<const char> comm_life;
    hcommStream_t stream;  // may be null
    std::weak_ptr<const char> stream_life;
  };
  static constexpr uint64_t kAlive = 0x6e616c706d6d6f63;
  uint64_t magic = kAlive;
  uint32_t generation = hcomm::process_generation();
  std::shared_ptr<Together> together;  // null: the group was empty
  std::vector<Kept> kept;
  bool started = false;                // and not waited for
  std::thread::id thread;              // that started it
  std::shared_ptr<hcomm::engine::Mark> done;  // on streams
  ~hcommPlan() { magic = 0; }
};

hcommPlan::Kept::Kept(const Group::Item& item)
    : comm(item.comm), comm_life(item.comm->life), stream(item.stream) {
  if (stream != nullptr) stream_life = stream->life;
}

namespace {

// "" or why `plan` cannot be used by `call`.
std::string unusable(const char* call, hcommPlan_t plan) {
  if (plan == nullptr) return fmt::format("{}: plan is NULL", call);
  if (plan->magic != hcommPlan::kAlive)
    return fmt::format("{}: plan is no plan, or was destroyed", call);
  if (plan->generation != hcomm::process_generation())
    return fmt::format("{}: this process was forked after the plan was made; make a new one", call);
  return "";
}

template <typename Body>
hcommResult_t with(const char* call, hcommPlan_t plan, Body body) {
  return guarded(call, [&] {
    if (std::string why = unusable(call, plan); !why.empty())
      return refuse(Code::invalid_argument, std::move(why));
    return body();
  });
}

hcommResult_t misused(const char* call, const char* why) {
  return refuse(Code::invalid_usage, fmt::format("{}: {}", call, why));
}

// What was started without a stream moves in the thread that started it.
bool elsewhere(hcommPlan_t plan) {
  return plan->started && plan->done == nullptr && plan->together != nullptr &&
         !plan->together->finished() && plan->thread != std::this_thread::get_id();
}
constexpr const char* kElsewhere = "the plan was started by another thread, without a stream: that "
                                   "thread moves it, and waits for it";

// The communicators and streams of a plan, which may have gone since.
hcommResult_t check_handles(const char* call, hcommPlan_t plan) {
  for (const hcommPlan::Kept& kept : plan->kept) {
    const bool comm_gone = kept.comm_life.expired();
    if (comm_gone || (kept.stream != nullptr && kept.stream_life.expired()))
      return refuse(Code::invalid_argument,
                    fmt::format("{}: a {} of the plan was destroyed; make a new plan", call,
                                comm_gone ? "communicator" : "stream"));
    if (!alive(kept.comm)) return refuse_handle(call, kept.comm);
    if (kept.comm->finalized) return refuse_finalized(call, kept.comm);
    if (kept.stream != nullptr && !alive(kept.stream)) return refuse_handle(call, kept.stream);
  }
  return hcommSuccess;
}

hcommResult_t wait(hcommPlan_t plan) {
  if (plan->together == nullptr) return hcommSuccess;
  if (plan->done == nullptr) return result_of(plan->together->settle());
  settle_all();
  plan->done->wait();
  return result_of(plan->together->code());
}

}  // namespace

extern "C" {

hcommResult_t hcommPlanCreate(hcommPlan_t* plan) {
  return guarded("hcommPlanCreate", [&] {
    if (plan == nullptr) return refuse(Code::invalid_argument, "hcommPlanCreate: plan is NULL");
    *plan = nullptr;
    if (group().depth() != 1)
      return misused("hcommPlanCreate", "it takes the place of the hcommGroupEnd of an outermost "
                                        "group: call hcommGroupStart once before it");
    const std::optional<Group::Content> content = group().end();
    if (!content->setups.empty()) settle_all();  // their places, to be given up, may be behind it
    if (content->error != hcommSuccess) {
      remember(content->text);
      return content->error;
    }
    if (!content->setups.empty())
      return misused("hcommPlanCreate", "the group joins, splits or shrinks communicators; only "
                                        "operations can be kept");
    auto made = std::make_unique<hcommPlan>();
    for (const Group::Item& item : content->items) made->kept.emplace_back(item);
    if (!content->items.empty()) made->together = std::make_shared<Together>(content->items);
    *plan = made.release();
    return hcommSuccess;
  });
}

hcommResult_t hcommPlanStart(hcommPlan_t plan) {
  return with("hcommPlanStart", plan, [&] {
    if (plan->started)
      return misused("hcommPlanStart", "the plan is under way: call hcommPlanWait first");
    if (in_group()) return misused("hcommPlanStart", "a plan cannot be started inside a group");
    if (plan->together != nullptr) {
      const hcommResult_t usable = check_handles("hcommPlanStart", plan);
      if (usable != hcommSuccess) return usable;
      plan->done = start_together(plan->together);
    }
    plan->thread = std::this_thread::get_id();
    plan->started = true;
    if (plan->together != nullptr && plan->done == nullptr) plan->together->begin();
    return hcommSuccess;
  });
}

hcommResult_t hcommPlanQuery(hcommPlan_t plan) {
  return with("hcommPlanQuery", plan, [&] {
    if (!plan->started || plan->together == nullptr) return hcommSuccess;
    if (elsewhere(plan)) return misused("hcommPlanQuery", kElsewhere);
    progress();
    if (plan->done != nullptr) return plan->done->passed() ? hcommSuccess : hcommInProgress;
    return plan->together->finished() ? hcommSuccess : hcommInProgress;
  });
}

hcommResult_t hcommPlanWait(hcommPlan_t plan) {
  return with("hcommPlanWait", plan, [&] {
    if (!plan->started) return misused("hcommPlanWait", "the plan was not started");
    if (elsewhere(plan)) return misused("hcommPlanWait", kElsewhere);
    const hcommResult_t result = wait(plan);
    plan->started = false;
    return result;
  });
}

hcommResult_t hcommPlanDestroy(hcommPlan_t plan) {
  if (plan == nullptr) return hcommSuccess;
  return with("hcommPlanDestroy", plan, [&] {
    if (elsewhere(plan)) return misused("hcommPlanDestroy", kElsewhere);
    if (plan->started) wait(plan);
    delete plan;
    return hcommSuccess;
  });
}

hcommResult_t hcommProgress(int* underway) {
  return guarded("hcommProgress", [&] {
    const size_t left = progress();
    if (underway != nullptr) *underway = static_cast<int>(left);
    return hcommSuccess;
  });
}

}  // extern "C"
