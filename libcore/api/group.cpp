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

// Sends and receives of one communicator, in this thread: the usual group, without a Together.
bool plain_exchange(const Items& items) {
  const hcommComm_t comm = items.front().comm;
  return !any_underway() && items.size() <= comm::kMaxExchanged &&
         std::all_of(items.begin(), items.end(), [&](const Group::Item& item) {
           return item.comm == comm && !on_stream(item) &&
                  item.call.collective == schedule::Collective::point_to_point;
         });
}

hcommResult_t run_items(const Items& items) {
  if (plain_exchange(items)) {
    thread_local std::vector<comm::Call> calls;  // kept for its memory
    calls.clear();
    for (const Group::Item& item : items) calls.push_back(item.call);
    return result_of(items.front().comm->communicator->run(calls));
  }
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

Group::Item::Item(hcommComm_t of, hcommStream_t on, const comm::Call& given)
    : comm(of), stream(on), call(given) {
  if (!given.varied) return;
  const size_t** const fields[4] = {&call.send_blocks.counts, &call.send_blocks.displs,
                                    &call.recv_blocks.counts, &call.recv_blocks.displs};
  const uint32_t ranks = comm->communicator->ranks();
  for (size_t i = 0; i < 4; i++) {
    if (*fields[i] == nullptr) continue;
    arrays[i] = std::make_shared<const std::vector<size_t>>(*fields[i], *fields[i] + ranks);
    *fields[i] = arrays[i]->data();
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
  if (content_.setups.size() > starts_.back().setups) settle_all();  // before their places go
  content_.items.erase(content_.items.begin() + static_cast<ptrdiff_t>(starts_.back().items),
                       content_.items.end());
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
    t_group.add({comm, stream, call});
    return hcommSuccess;
  }
  if (stream == nullptr && !any_underway()) [[likely]]
    return result_of(communicator.run(call));
  return run_items({{comm, stream, call}});
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
    std::optional<Group::Content> content = group().end();
    if (!content) return hcommSuccess;
    if (!content->setups.empty()) settle_all();  // their places may be behind it
    if (content->error != hcommSuccess) {
      remember(content->text);
      return content->error;
    }
    hcommResult_t result = run_setups(content->setups);
    if (result == hcommSuccess && !content->items.empty()) result = run_items(content->items);
    content->items.clear();
    group().reuse(std::move(content->items));
    return result;
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
