// SPDX-License-Identifier: Apache-2.0
#include "api/together.h"

#include <algorithm>
#include <thread>

#include "api/handles.h"
#include "base/process.h"

namespace hcomm::api {

namespace {

// In the order in which they were started.
struct Underway : std::vector<Together*> {
  uint32_t generation = 0;  // of the process: a forked child has its parent's list, and must not
  ~Underway() {
    if (generation != process_generation()) return;
    for (Together* each : *this) each->abandon();
  }
};
thread_local Underway t_underway;

Underway& underway() {
  if (t_underway.generation != process_generation()) {
    t_underway.clear();
    t_underway.generation = process_generation();
  }
  return t_underway;
}

// All that a drive of this thread moves: kept for its memory.
thread_local std::vector<engine::Party*> t_parties;
std::mutex g_order;

}  // namespace

std::mutex& order() { return g_order; }

Together::Together(std::vector<Group::Item> items) : items_(std::move(items)) {
  std::vector<hcommComm_t> comms;
  for (const Group::Item& item : items_)
    if (std::find(comms.begin(), comms.end(), item.comm) == comms.end())
      comms.push_back(item.comm);
  for (const hcommComm_t comm : comms) {
    std::vector<comm::Call> calls;
    for (const Group::Item& item : items_)
      if (item.comm == comm) calls.push_back(item.call);
    batches_.emplace_back(*comm->communicator, std::move(calls));
  }
  for (comm::Batch& batch : batches_) parties_.push_back(&batch);
}

Together::~Together() {
  if (!finished()) settle();
}

void Together::start() {
  for (comm::Batch& batch : batches_) batch.start();
}

engine::Patience Together::patience() const {
  engine::Patience patience = batches_.front().patience();
  // Ranks that share this thread cannot spin for one another.
  for (const comm::Batch& batch : batches_)
    patience.crowded = patience.crowded || batch.patience().crowded;
  return patience;
}

// With something under way a place may be behind it: then nobody may block for it.
Code Together::run() {
  if (any_underway()) return settle();
  for (comm::Batch& batch : batches_) batch.enter();
  engine::drive(parties_, patience());
  return code();
}

void Together::begin() {
  watch_ = {};
  underway().push_back(this);
  progress();
}

Code Together::settle() {
  if (finished()) return settled();
  t_parties = parties_;
  for (const Together* each : underway())
    if (each != this)
      t_parties.insert(t_parties.end(), each->parties_.begin(), each->parties_.end());
  engine::drive(t_parties, patience(), parties_.size());
  return settled();
}

// Its communicators may be gone.
Code Together::settled() {
  std::erase(underway(), this);
  return code();
}

void Together::abandon() {
  for (comm::Batch& batch : batches_) {
    if (batch.finished()) continue;
    batch.communicator().abort("the end of a thread that had started a plan and not waited for it");
    while (!batch.finished()) {  // at once where it runs; else when the place has come
      batch.idle(0, 0);
      if (!batch.advance()) std::this_thread::yield();
    }
  }
}

bool Together::finished() const {
  return std::all_of(batches_.begin(), batches_.end(),
                     [](const comm::Batch& batch) { return batch.finished(); });
}

bool Together::advance() {
  bool moved = false;
  for (comm::Batch& batch : batches_)
    if (!batch.finished()) moved |= batch.advance();
  if (moved)
    watch_.progressed();
  else
    watch_.look(parties_, INT64_MAX);
  return finished();
}

Code Together::code() const {
  for (const comm::Batch& batch : batches_)
    if (batch.code() != Code::ok) return batch.code();
  return Code::ok;
}

bool on_stream(const Group::Item& item) { return item.stream != nullptr; }

// On streams all items run in the worker of the first; the others give way to it: it starts when
// their earlier work is done, and their later work when it is.
std::shared_ptr<engine::Mark> start_together(const std::shared_ptr<Together>& together) {
  std::vector<hcommStream_t> streams;
  for (const Group::Item& item : together->items())
    if (item.stream != nullptr &&
        std::find(streams.begin(), streams.end(), item.stream) == streams.end())
      streams.push_back(item.stream);
  const std::lock_guard lock(order());
  together->start();
  if (streams.empty()) return nullptr;
  engine::Stream& runner = streams.front()->worker;
  for (size_t i = 1; i < streams.size(); i++) runner.wait_for(streams[i]->worker.mark());
  runner.enqueue([together] { return together->run(); });
  const auto done = runner.mark();
  for (size_t i = 1; i < streams.size(); i++) streams[i]->worker.wait_for(done);
  return done;
}

bool any_underway() { return !t_underway.empty() && !underway().empty(); }

size_t progress() {
  Underway& list = underway();
  std::erase_if(list, [](Together* each) { return each->advance(); });
  return list.size();
}

void settle_all() {
  while (any_underway()) t_underway.front()->settle();
}

}  // namespace hcomm::api
