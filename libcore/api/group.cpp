// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <deque>
#include <thread>

#include "api/handles.h"
#include "comm/batch.h"

namespace hcomm::api {

namespace {

thread_local Group t_group;

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
    for (comm::Batch& batch : batches_) {
      const Code each = batch.leave();
      if (code == Code::ok) code = each;
    }
    return code;
  }

 private:
  Items items_;  // keeps the calls
  std::deque<comm::Batch> batches_;
};

hcommResult_t run_setups(const std::vector<std::function<hcommResult_t()>>& setups) {
  std::vector<hcommResult_t> results(setups.size(), hcommSuccess);
  std::vector<std::string> texts(setups.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < setups.size(); i++)
    threads.emplace_back([&, i] {
      results[i] = setups[i]();
      if (results[i] != hcommSuccess) texts[i] = last_text();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < setups.size(); i++)
    if (results[i] != hcommSuccess) {
      remember(texts[i]);
      return results[i];
    }
  return hcommSuccess;
}

// All items run in the worker of the first stream; the other streams give way to it: it starts when
// their earlier work is done, and their later work when it is.
hcommResult_t run_on_streams(const Items& items, std::shared_ptr<Together> together) {
  std::vector<hcommStream_t> streams;
  bool waits = false;
  for (const Group::Item& item : items) {
    waits = waits || item.stream == nullptr;
    if (item.stream != nullptr &&
        std::find(streams.begin(), streams.end(), item.stream) == streams.end())
      streams.push_back(item.stream);
  }
  const auto done = std::make_shared<engine::Event>();
  engine::Stream& runner = streams.front()->worker;
  for (size_t i = 1; i < streams.size(); i++) {
    const auto arrived = std::make_shared<engine::Event>();
    streams[i]->worker.record(arrived);
    runner.wait_for(arrived);
  }
  runner.enqueue([together] { return together->run(); });
  runner.record(done);
  for (size_t i = 1; i < streams.size(); i++) streams[i]->worker.wait_for(done);
  if (waits) done->wait(done->recorded());
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

bool Group::end(Items& items, std::vector<std::function<hcommResult_t()>>& setups) {
  if (--depth_ > 0) return false;
  items = std::exchange(items_, {});
  setups = std::exchange(setups_, {});
  return true;
}

void Group::drop() {
  items_.clear();
  setups_.clear();
}

hcommResult_t Group::take_error() { return std::exchange(error_, hcommSuccess); }

hcommResult_t submit(hcommComm_t comm, hcommStream_t stream, const comm::Call& call) {
  comm::Communicator& communicator = *comm->communicator;
  if (in_group()) {
    t_group.add({comm, stream, std::make_shared<KeptCall>(call, communicator.ranks())});
    return hcommSuccess;
  }
  if (stream == nullptr) return result_of(communicator.run(call, communicator.take_ticket()));
  auto kept = std::make_shared<KeptCall>(call, communicator.ranks());
  const Items items{{comm, stream, kept}};
  return run_on_streams(items, std::make_shared<Together>(items));
}

}  // namespace hcomm::api

using namespace hcomm::api;

extern "C" {

hcommResult_t hcommGroupStart() {
  group().start();
  return hcommSuccess;
}

hcommResult_t hcommGroupEnd() {
  return guarded("hcommGroupEnd", [] {
    if (!group().open())
      return refuse(hcomm::Code::invalid_usage, "hcommGroupEnd without hcommGroupStart");
    std::vector<Group::Item> items;
    std::vector<std::function<hcommResult_t()>> setups;
    if (!group().end(items, setups)) return hcommSuccess;
    if (const hcommResult_t error = group().take_error(); error != hcommSuccess) return error;
    if (const hcommResult_t result = run_setups(setups); result != hcommSuccess) return result;
    if (items.empty()) return hcommSuccess;
    bool any_stream = false;
    for (const Group::Item& item : items) any_stream = any_stream || item.stream != nullptr;
    auto together = std::make_shared<Together>(items);
    if (any_stream) return run_on_streams(items, together);
    return result_of(together->run());
  });
}

hcommResult_t hcommGroupSimulateEnd() {
  return guarded("hcommGroupSimulateEnd", [] {
    if (!group().open())
      return refuse(hcomm::Code::invalid_usage, "hcommGroupSimulateEnd without hcommGroupStart");
    std::vector<Group::Item> items;
    std::vector<std::function<hcommResult_t()>> setups;
    group().end(items, setups);
    return group().take_error();
  });
}

}  // extern "C"
