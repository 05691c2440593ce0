// SPDX-License-Identifier: Apache-2.0
// Proof 2: runs all ranks with nothing but the rules of schedule.h, each send completing only at
// its receive (or when the channel's credits hold it). Every rule waits for all of some events,
// none for one of several, so one run decides: what can run in some order runs here.
#include <algorithm>

#include "schedule/check_parts.h"

namespace hcomm::schedule {
namespace {

class Run {
 public:
  Run(const Whole& whole, uint32_t credits, uint32_t tiles);
  std::vector<uint32_t> to_the_end();

 private:
  struct Channel {  // counted over all tiles
    uint32_t sent = 0, posted = 0, received = 0;
  };
  struct Progress {
    uint32_t needs = 0;  // not yet done
    uint32_t open = 0;   // messages not yet taken over
    bool started = false, done = false;
  };

  void begin_tile(uint32_t rank);
  bool first_in_its_channels(uint32_t id) const;
  void try_start(uint32_t id);
  void start_send(uint32_t id);
  void start_recv(uint32_t id);
  void deliver(uint32_t message);
  void take_over(uint32_t send);
  void finish(uint32_t id);
  uint32_t number_of(uint32_t message) const;
  [[noreturn]] void explain() const;
  uint32_t unfinished(uint32_t rank) const;
  uint32_t awaited_by(uint32_t id) const;
  uint32_t awaited_by_message(uint32_t id, uint32_t message) const;

  const Whole& whole_;
  const uint32_t credits_, tiles_;
  std::vector<Progress> steps_;
  std::vector<Channel> channels_;
  std::vector<uint32_t> tile_, left_;  // of each rank
  std::vector<uint32_t> candidates_, order_;
};

Run::Run(const Whole& whole, uint32_t credits, uint32_t tiles)
    : whole_(whole), credits_(credits), tiles_(std::max(tiles, 1u)) {
  steps_.resize(whole.steps());
  channels_.resize(whole.channels());
  tile_.resize(whole.ranks());
  left_.resize(whole.ranks());
  order_.reserve(whole.steps());
}

std::vector<uint32_t> Run::to_the_end() {
  for (uint32_t rank = 0; rank < whole_.ranks(); rank++) begin_tile(rank);
  while (!candidates_.empty()) {
    const uint32_t id = candidates_.back();
    candidates_.pop_back();
    try_start(id);
  }
  for (const uint32_t tile : tile_)
    if (tile < tiles_) explain();
  return std::move(order_);
}

void Run::begin_tile(uint32_t rank) {
  const uint32_t first = whole_.first_step(rank), end = whole_.first_step(rank + 1);
  if (first == end) tile_[rank] = tiles_;
  if (tile_[rank] == tiles_) return;
  left_[rank] = end - first;
  for (uint32_t id = end; id-- > first;) {
    steps_[id] = {.needs = whole_.step(id).need_count};
    if (steps_[id].needs == 0) candidates_.push_back(id);
  }
}

// The number of a message among all of its channel, in the tile where its rank is.
uint32_t Run::number_of(uint32_t message) const {
  const uint32_t channel = whole_.channel_of(whole_.message(message));
  return message - whole_.first_message(channel);
}

bool Run::first_in_its_channels(uint32_t id) const {
  const bool sends = whole_.step(id).kind == StepKind::send;
  const uint32_t tile = tile_[whole_.rank_of(id)];
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t c = whole_.channel_of(whole_.message(m));
    const uint32_t begun = sends ? channels_[c].sent : channels_[c].posted;
    if (begun != tile * whole_.message_count(c) + number_of(m)) return false;
  }
  return true;
}

void Run::try_start(uint32_t id) {
  Progress& progress = steps_[id];
  if (progress.started || progress.needs > 0 || !first_in_its_channels(id)) return;
  progress.started = true;
  switch (whole_.step(id).kind) {
    case StepKind::send:
      return start_send(id);
    case StepKind::recv:
      return start_recv(id);
    default:
      return finish(id);
  }
}

void Run::start_send(uint32_t id) {
  if (tile_[whole_.rank_of(id)] == 0) order_.push_back(id);
  const std::span<const uint32_t> messages = whole_.messages_of(id);
  steps_[id].open = static_cast<uint32_t>(messages.size());
  for (const uint32_t m : messages) {
    const uint32_t c = whole_.channel_of(whole_.message(m));
    const uint32_t number = channels_[c].sent++;
    if (m + 1 < whole_.first_message(c + 1)) candidates_.push_back(whole_.message(m + 1).send);
    if (number < channels_[c].received + credits_) take_over(id);
    if (number < channels_[c].posted) deliver(m);
  }
}

void Run::start_recv(uint32_t id) {
  const uint32_t m = whole_.messages_of(id)[0];
  const uint32_t c = whole_.channel_of(whole_.message(m));
  const uint32_t number = channels_[c].posted++;
  if (m + 1 < whole_.first_message(c + 1)) candidates_.push_back(whole_.message(m + 1).recv);
  if (number < channels_[c].sent) deliver(m);
}

// Both sides have started: the receive is done, and with it the send that waited for its place.
void Run::deliver(uint32_t message) {
  const uint32_t c = whole_.channel_of(whole_.message(message));
  const uint32_t count = whole_.message_count(c);
  const uint32_t freed = channels_[c].received++ + credits_;
  if (freed < channels_[c].sent)
    take_over(whole_.message(whole_.first_message(c) + freed % count).send);
  finish(whole_.message(message).recv);
}

void Run::take_over(uint32_t send) {
  if (--steps_[send].open == 0) finish(send);
}

void Run::finish(uint32_t id) {
  const uint32_t rank = whole_.rank_of(id);
  steps_[id].done = true;
  if (tile_[rank] == 0 && whole_.step(id).kind != StepKind::send) order_.push_back(id);
  for (const uint32_t dependent : whole_.dependents_of(id))
    if (--steps_[dependent].needs == 0) candidates_.push_back(dependent);
  if (--left_[rank] > 0) return;
  tile_[rank]++;
  begin_tile(rank);
}

uint32_t Run::unfinished(uint32_t rank) const {
  uint32_t id = whole_.first_step(rank);
  while (steps_[id].done) id++;
  return id;
}

void Run::explain() const {
  uint32_t rank = 0;
  while (tile_[rank] == tiles_) rank++;
  std::vector<uint32_t> chain;
  for (uint32_t id = unfinished(rank);; id = awaited_by(id)) {
    const auto seen = std::find(chain.begin(), chain.end(), id);
    if (seen == chain.end()) {
      chain.push_back(id);
      continue;
    }
    chain.erase(chain.begin(), seen);
    chain.push_back(id);
    break;
  }
  constexpr size_t kShown = 8;
  std::string text = whole_.text(chain[0]);
  for (size_t i = 1; i < std::min(chain.size(), kShown); i++)
    text += fmt::format("{} waits for {}", i == 1 ? "" : ", which", whole_.text(chain[i]));
  if (chain.size() > kShown) text += fmt::format(", and so on over {} steps", chain.size() - 1);
  fault("deadlock in tile {}, {} credits: {}", tile_[rank], credits_, text);
}

// A step that has to come before this one and has not.
uint32_t Run::awaited_by(uint32_t id) const {
  const uint32_t rank = whole_.rank_of(id);
  for (const uint32_t need : whole_.of(rank).needs_of(whole_.step(id)))
    if (!steps_[whole_.first_step(rank) + need].done) return whole_.first_step(rank) + need;
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t awaited = awaited_by_message(id, m);
    if (awaited != id) return awaited;
  }
  return id;
}

// The same as regards one message of the step; the step itself when that message holds up nothing.
uint32_t Run::awaited_by_message(uint32_t id, uint32_t m) const {
  const Message& message = whole_.message(m);
  const bool sends = message.send == id;
  const uint32_t peer = sends ? message.recv : message.send;
  if (!steps_[id].started) {
    if (number_of(m) == 0) return id;  // its predecessors were in an earlier tile, all done
    const Message& before = whole_.message(m - 1);
    const uint32_t awaited = sends ? before.send : before.recv;
    return steps_[awaited].started ? id : awaited;
  }
  const uint32_t own_rank = whole_.rank_of(id), peer_rank = whole_.rank_of(peer);
  if (tile_[peer_rank] < tile_[own_rank]) return unfinished(peer_rank);
  const bool passed = tile_[peer_rank] > tile_[own_rank] || steps_[peer].done;
  return passed || (!sends && steps_[peer].started) ? id : peer;
}

}  // namespace

std::vector<uint32_t> order_of(const Whole& whole, uint32_t credits, uint32_t tiles) {
  return Run(whole, credits, tiles).to_the_end();
}

}  // namespace hcomm::schedule
