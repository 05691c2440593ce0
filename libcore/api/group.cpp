// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <thread>

#include "api/handles.h"
#include "api/together.h"
#include "base/thread.h"

namespace hcomm::api {

namespace {

thread_local Group t_group;
using Items = std::vector<Group::Item>;

// Each in a thread of its own: they wait for one another.
hcommResult_t run_setups(const std::vector<Group::Setup>& setups) {
  std::vector<hcommResult_t> results(setups.size(), hcommSuccess);
  std::vector<std::string> texts(setups.size());
  struct Threads : std::vector<std::thread> {
    ~Threads() {
      for (std::thread& thread : *this) thread.join();
    }
  };
  {
    Threads threads;
    threads.reserve(setups.size());
    for (size_t i = 0; i < setups.size(); i++)
      threads.push_back(start_thread("hcomm-setup", [&, i] {
        results[i] = setups[i].run();
        if (results[i] != hcommSuccess) texts[i] = last_text();
      }));
  }
  for (size_t i = 0; i < setups.size(); i++)
    if (results[i] != hcommSuccess) {
      remember(texts[i]);
      return results[i];
    }
  return hcommSuccess;
}

hcommResult_t run_items(const Items& items) {
  const auto together = std::make_shared<Together>(items);
  const std::shared_ptr<engine::Mark> done = start_together(together);
  if (done == nullptr) return result_of(together->run());
  // On streams; with items on none the caller waits.
  if (std::all_of(items.begin(), items.end(), on_stream)) return hcommSuccess;
  settle_all();
  done->wait();
  return hcommSuccess;
}

}  // namespace

Group& group() { return t_group; }
bool in_group() { return t_group.open(); }

KeptCall::KeptCall(const comm::Call& call, uint32_t ranks) : call_(call) {
  const size_t** const fields[4] = {&call_.send_blocks.counts, &call_.send_blocks.displs,
                                    &call_.recv_blocks.counts, &call_.recv_blocks.displs};
  for (size_t i = 0; i < 4; i++) {
    if (*fields[i] == nullptr) continue;
    arrays_[i].assign(*fields[i], *fields[i] + ranks);
    *fields[i] = arrays_[i].data();
  }
}

std::optional<Group::Content> Group::end() {
  starts_.pop_back();
  if (open()) return std::nullopt;
  return std::exchange(content_, {});
}

bool Group::splits(hcommComm_t comm) const {
  return std::any_of(content_.setups.begin(), content_.setups.end(),
                     [&](const Setup& setup) { return setup.parent == comm; });
}

hcommResult_t Group::cancel() {
  const hcommResult_t error = content_.error;
  content_.items.resize(starts_.back().items);
  content_.setups.resize(starts_.back().setups, {});
  if (!end()) content_.error = hcommSuccess;
  return error;
}

void Group::note(hcommResult_t result) {
  if (content_.error != hcommSuccess) return;
  content_.error = result;
  content_.text = last_text();
}

hcommResult_t submit(hcommComm_t comm, hcommStream_t stream, const comm::Call& call) {
  comm::Communicator& communicator = *comm->communicator;
  if (in_group()) {
    t_group.add({comm, stream, std::make_shared<KeptCall>(call, communicator.ranks())});
    return hcommSuccess;
  }
  if (stream == nullptr && !any_underway()) [[likely]]
    return result_of(communicator.run(call));
  return run_items({{comm, stream, std::make_shared<KeptCall>(call, communicator.ranks())}});
}

}  // namespace hcomm::api

using namespace hcomm::api;

extern "C" {

hcommResult_t hcommGroupStart() {
  return guarded("hcommGroupStart", [] {
    group().start();
    return hcommSuccess;
  });
}

hcommResult_t hcommGroupEnd() {
  return guarded("hcommGroupEnd", [] {
    if (!group().open())
      return refuse(hcomm::Code::invalid_usage, "hcommGroupEnd without hcommGroupStart");
    const std::optional<Group::Content> content = group().end();
    if (!content) return hcommSuccess;
    if (content->error != hcommSuccess) {
      remember(content->text);
      return content->error;
    }
    if (!content->setups.empty()) settle_all();
    const hcommResult_t result = run_setups(content->setups);
    return result != hcommSuccess || content->items.empty() ? result : run_items(content->items);
  });
}

hcommResult_t hcommGroupSimulateEnd() {
  return guarded("hcommGroupSimulateEnd", [] {
    if (!group().open())
      return refuse(hcomm::Code::invalid_usage, "hcommGroupSimulateEnd without hcommGroupStart");
    return group().cancel();
  });
}

}  // extern "C"
