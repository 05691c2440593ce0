// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "api/handles.h"
#include "base/thread.h"
#include "comm/batch.h"

namespace hcomm::api {

namespace {

thread_local Group t_group;
// Held while a thread takes its turns in several communicators and streams: all threads take them
// in one order, so no two wait for one another.
std::mutex g_order;

using Items = std::vector<Group::Item>;

// One batch a communicator, in order of first appearance; driven together in the calling thread.
class Together {
 public:
  explicit Together(const Items& items) : items_(items) {
    std::vector<hcommComm_t> comms;
    for (const Group::Item& item : items)
      if (std::find(comms.begin(), comms.end(), item.comm) == comms.end())
        comms.push_back(item.comm);
    for (const hcommComm_t comm : comms) {
      std::vector<comm::Call> calls;
      for (const Group::Item& item : items)
        if (item.comm == comm) calls.push_back(item.call->call());
      batches_.emplace_back(*comm->communicator, std::move(calls));
    }
  }

  Code run() {
    std::vector<engine::Party*> parties;
    engine::Patience patience = batches_.front().patience();
    for (comm::Batch& batch : batches_) {
      batch.enter();
      parties.push_back(&batch);
      // Ranks that share this thread cannot spin for one another.
      patience.crowded = patience.crowded || batch.patience().crowded;
    }
    engine::drive(parties, patience);
    Code code = Code::ok;
    for (const comm::Batch& batch : batches_)
      if (code == Code::ok) code = batch.code();
    batches_.clear();  // the turns end
    return code;
  }

 private:
  Items items_;  // keeps the calls
  std::deque<comm::Batch> batches_;
};

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

// All items run in the worker of the first stream; the other streams give way to it: it starts when
// their earlier work is done, and their later work when it is. With items on no stream the caller
// waits for what is returned.
std::shared_ptr<engine::Mark> run_on_streams(const Items& items,
                                             std::shared_ptr<Together> together) {
  std::vector<hcommStream_t> streams;
  bool waits = false;
  for (const Group::Item& item : items) {
    waits = waits || item.stream == nullptr;
    if (item.stream != nullptr &&
        std::find(streams.begin(), streams.end(), item.stream) == streams.end())
      streams.push_back(item.stream);
  }
  engine::Stream& runner = streams.front()->worker;
  for (size_t i = 1; i < streams.size(); i++) runner.wait_for(streams[i]->worker.mark());
  runner.enqueue([together] { return together->run(); });
  const auto done = runner.mark();
  for (size_t i = 1; i < streams.size(); i++) streams[i]->worker.wait_for(done);
  return waits ? done : nullptr;
}

hcommResult_t run_items(const Items& items) {
  std::shared_ptr<Together> together;
  std::shared_ptr<engine::Mark> done;
  const bool on_stream = std::any_of(items.begin(), items.end(), [](const Group::Item& item) {
    return item.stream != nullptr;
  });
  {
    const std::lock_guard lock(g_order);
    together = std::make_shared<Together>(items);
    if (on_stream) done = run_on_streams(items, together);
  }
  if (!on_stream) return result_of(together->run());
  if (done != nullptr) done->wait();
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
  if (stream == nullptr) return result_of(communicator.run(call));
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
