// SPDX-License-Identifier: Apache-2.0
#include "schedule/cost.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "schedule/whole.h"

namespace hcomm::schedule {
namespace {

constexpr uint32_t kNone = ~0u;

// One tile over all ranks, event by event. What takes time: a rank's thread on a core of its node
// (its steps, local work, and the bytes that it moves to or from ranks of its node); the outgoing
// and the incoming port of a rank for bytes between nodes; the latency of a link. A rank keeps its
// core while it has work; then the next waiting rank of the node takes over.
class Simulation {
 public:
  Simulation(const Whole& whole, const Machine& machine, double chunk_bytes);
  TileCost run();

 private:
  enum class Happens : uint8_t { work_ends, head_arrives, bytes_out, bytes_in };
  struct Event {
    double at_us;
    uint32_t sequence;  // equal times happen in the order in which they were foreseen
    Happens what;
    uint32_t id;  // rank, message, step, step
    bool operator<(const Event& other) const {
      return at_us != other.at_us ? at_us > other.at_us : sequence > other.sequence;
    }
  };
  struct StepState {
    uint32_t needs = 0, next_queued = kNone;
    bool started = false;
    double out_until_us = 0;
  };
  struct Rank {
    uint32_t first_queued = kNone, last_queued = kNone;  // work that is ready
    uint32_t working_on = kNone, core = kNone, next_waiting = kNone;
    bool waits_for_core = false;
    double out_free_us = 0, in_free_us = 0;
    double core_us = 0, out_us = 0, in_us = 0;  // busy
    double first_us = -1, end_us = 0;
  };
  struct Node {
    std::vector<uint32_t> free_cores, last_rank;
    uint32_t first_waiting = kNone, last_waiting = kNone;
    double core_us = 0;
  };
  struct Channel {
    uint32_t sent = 0, posted = 0;
  };

  void make_nodes();
  bool spills() const;
  void foresee(double at_us, Happens what, uint32_t id);
  void happen(const Event& event);
  void try_start(uint32_t id);
  bool first_in_its_channels(uint32_t id) const;
  void start(uint32_t id);
  void finish(uint32_t id);
  void receive(uint32_t message);
  void enqueue(uint32_t id);
  bool take_core(uint32_t rank);
  void work(uint32_t rank, double delay_us);
  void work_ends(uint32_t rank);
  double work_of(uint32_t id) const;
  void depart(uint32_t id, double at_us);
  TileCost sum() const;

  double bytes_of(uint32_t id) const;
  const Link& link(uint32_t from, uint32_t to) const {
    return machine_.links[from * machine_.ranks + to];
  }
  bool local(uint32_t from, uint32_t to) const { return machine_.node[from] == machine_.node[to]; }

  const Whole& whole_;
  const Machine& machine_;
  const double chunk_bytes_;
  const bool spills_;
  double now_us_ = 0;
  uint32_t sequence_ = 0;
  std::priority_queue<Event> events_;
  std::vector<StepState> steps_;
  std::vector<Rank> ranks_;
  std::vector<Node> nodes_;
  std::vector<Channel> channels_;
  std::vector<uint8_t> arrived_;  // messages
};

Simulation::Simulation(const Whole& whole, const Machine& machine, double chunk_bytes)
    : whole_(whole),
      machine_(machine),
      chunk_bytes_(chunk_bytes),
      spills_(spills()),
      steps_(whole.steps()),
      ranks_(whole.ranks()),
      channels_(whole.channels()),
      arrived_(whole.messages()) {
  make_nodes();
}

// Whether what the ranks of a node read and write in a tile is more than half of its cache: the
// rest holds what travels.
bool Simulation::spills() const {
  if (machine_.cache_bytes <= 0) return false;
  std::vector<double> bytes;
  for (uint32_t rank = 0; rank < whole_.ranks(); rank++) {
    const uint32_t node = machine_.node[rank];
    if (node >= bytes.size()) bytes.resize(node + 1);
    const Shape& shape = whole_.of(rank).shape;
    bytes[node] +=
        (blocks_of(shape, kInput) + blocks_of(shape, kOutput)) * whole_.parts() * chunk_bytes_;
  }
  return *std::max_element(bytes.begin(), bytes.end()) > machine_.cache_bytes / 2;
}

void Simulation::make_nodes() {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    const uint32_t node = machine_.node[rank];
    if (node >= nodes_.size()) nodes_.resize(node + 1);
    std::vector<uint32_t>& last_rank = nodes_[node].last_rank;
    if (last_rank.size() >= std::max(machine_.cores_of_node, 1u)) continue;
    ranks_[rank].core = static_cast<uint32_t>(last_rank.size());  // it sits there from the start
    nodes_[node].free_cores.push_back(ranks_[rank].core);
    last_rank.push_back(rank);
  }
}

TileCost Simulation::run() {
  for (uint32_t id = 0; id < whole_.steps(); id++) steps_[id].needs = whole_.step(id).need_count;
  for (uint32_t id = 0; id < whole_.steps(); id++) try_start(id);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_us_ = event.at_us;
    happen(event);
  }
  return sum();
}

void Simulation::foresee(double at_us, Happens what, uint32_t id) {
  events_.push({at_us, sequence_++, what, id});
}

void Simulation::happen(const Event& event) {
  switch (event.what) {
    case Happens::work_ends:
      return work_ends(event.id);
    case Happens::bytes_out:
      return finish(event.id);
    case Happens::bytes_in:
      return enqueue(event.id);
    case Happens::head_arrives:
      arrived_[event.id] = 1;
      if (steps_[whole_.message(event.id).recv].started) receive(event.id);
  }
}

bool Simulation::first_in_its_channels(uint32_t id) const {
  const bool sends = whole_.step(id).kind == StepKind::send;
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t c = whole_.channel_of(whole_.message(m));
    const uint32_t begun = sends ? channels_[c].sent : channels_[c].posted;
    if (begun != m - whole_.first_message(c)) return false;
  }
  return true;
}

void Simulation::try_start(uint32_t id) {
  if (!steps_[id].started && steps_[id].needs == 0 && first_in_its_channels(id)) start(id);
}

void Simulation::start(uint32_t id) {
  steps_[id].started = true;
  const StepKind kind = whole_.step(id).kind;
  if (kind != StepKind::recv) enqueue(id);
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t c = whole_.channel_of(whole_.message(m));
    kind == StepKind::send ? channels_[c].sent++ : channels_[c].posted++;
    if (kind == StepKind::recv && arrived_[m]) receive(m);
  }
  for (const uint32_t m : whole_.messages_of(id)) {
    if (m + 1 == whole_.first_message(whole_.channel_of(whole_.message(m)) + 1)) continue;
    const Message& next = whole_.message(m + 1);
    try_start(kind == StepKind::send ? next.send : next.recv);
  }
}

void Simulation::finish(uint32_t id) {
  Rank& rank = ranks_[whole_.rank_of(id)];
  rank.end_us = std::max(rank.end_us, now_us_);
  for (const uint32_t dependent : whole_.dependents_of(id)) {
    steps_[dependent].needs--;
    try_start(dependent);
  }
}

// The head of the message is here and its receive has started.
void Simulation::receive(uint32_t m) {
  const uint32_t id = whole_.message(m).recv, to = whole_.rank_of(id);
  const uint32_t from = whole_.rank_of(whole_.message(m).send);
  if (local(from, to)) return enqueue(id);
  Rank& rank = ranks_[to];
  if (rank.first_us < 0) rank.first_us = now_us_;
  const double takes_us = bytes_of(id) * link(from, to).us_per_byte;
  rank.in_us += takes_us;
  rank.in_free_us = std::max(now_us_, rank.in_free_us) + takes_us;
  foresee(rank.in_free_us, Happens::bytes_in, id);
}

// Work for the thread of the rank.
void Simulation::enqueue(uint32_t id) {
  const uint32_t r = whole_.rank_of(id);
  Rank& rank = ranks_[r];
  if (rank.first_us < 0) rank.first_us = now_us_;
  (rank.first_queued == kNone ? rank.first_queued : steps_[rank.last_queued].next_queued) = id;
  rank.last_queued = id;
  if (rank.working_on != kNone || rank.waits_for_core || take_core(r)) return;
  Node& node = nodes_[machine_.node[r]];
  rank.waits_for_core = true;
  rank.next_waiting = kNone;
  (node.first_waiting == kNone ? node.first_waiting : ranks_[node.last_waiting].next_waiting) = r;
  node.last_waiting = r;
}

bool Simulation::take_core(uint32_t r) {
  Node& node = nodes_[machine_.node[r]];
  Rank& rank = ranks_[r];
  if (node.free_cores.empty()) return false;
  auto core = std::find(node.free_cores.begin(), node.free_cores.end(), rank.core);
  if (core == node.free_cores.end()) core = node.free_cores.end() - 1;
  rank.core = *core;
  *core = node.free_cores.back();
  node.free_cores.pop_back();
  const double delay_us = node.last_rank[rank.core] == r ? 0 : machine_.handover_us;
  node.last_rank[rank.core] = r;
  work(r, delay_us);
  return true;
}

void Simulation::work(uint32_t r, double delay_us) {
  Rank& rank = ranks_[r];
  const uint32_t id = rank.first_queued;
  rank.first_queued = steps_[id].next_queued;
  rank.working_on = id;
  const double takes_us = delay_us + work_of(id);
  rank.core_us += takes_us;
  nodes_[machine_.node[r]].core_us += takes_us;
  if (whole_.step(id).kind == StepKind::send) depart(id, now_us_ + delay_us);
  foresee(now_us_ + takes_us, Happens::work_ends, r);
}

void Simulation::work_ends(uint32_t r) {
  Rank& rank = ranks_[r];
  const uint32_t id = rank.working_on;
  if (steps_[id].out_until_us > now_us_)
    foresee(steps_[id].out_until_us, Happens::bytes_out, id);
  else
    finish(id);
  rank.working_on = kNone;
  if (rank.first_queued != kNone) return work(r, 0);
  Node& node = nodes_[machine_.node[r]];
  node.free_cores.push_back(rank.core);
  if (node.first_waiting == kNone) return;
  const uint32_t next = node.first_waiting;
  node.first_waiting = ranks_[next].next_waiting;
  ranks_[next].waits_for_core = false;
  take_core(next);
}

double Simulation::work_of(uint32_t id) const {
  const Step& step = whole_.step(id);
  const double bytes = bytes_of(id);
  double per_byte = 0;
  if (step.kind == StepKind::copy) per_byte = machine_.copy_us_per_byte;
  if (step.kind == StepKind::reduce) per_byte = machine_.reduce_us_per_byte;
  const bool again = step.kind == StepKind::send && step.a.buffer != kInput;
  const double spilled_us = again && spills_ ? bytes * machine_.spill_us_per_byte : 0;
  double overhead_us = 0;
  // Once for all peers of the node: they read what was written once.
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t from = whole_.rank_of(whole_.message(m).send);
    const uint32_t to = whole_.rank_of(whole_.message(m).recv);
    overhead_us += link(from, to).overhead_us;
    if (local(from, to)) per_byte = std::max(per_byte, link(from, to).us_per_byte);
  }
  return machine_.step_us + overhead_us + bytes * per_byte + spilled_us;
}

// The thread begins to send: the bytes follow one another out of the port, the head of each message
// arrives while they do.
void Simulation::depart(uint32_t id, double at_us) {
  const uint32_t from = whole_.rank_of(id);
  Rank& rank = ranks_[from];
  const double bytes = bytes_of(id);
  double begun_us = at_us + machine_.step_us;
  for (const uint32_t m : whole_.messages_of(id)) {
    const uint32_t to = whole_.rank_of(whole_.message(m).recv);
    double out_us = begun_us;
    if (!local(from, to)) {
      out_us = std::max(begun_us, rank.out_free_us);
      const double takes_us = bytes * link(from, to).us_per_byte;
      rank.out_us += takes_us;
      rank.out_free_us = out_us + takes_us;
      steps_[id].out_until_us = rank.out_free_us;
    }
    foresee(out_us + link(from, to).latency_us, Happens::head_arrives, m);
    begun_us += link(from, to).overhead_us;
  }
}

double Simulation::bytes_of(uint32_t id) const {
  const Step& step = whole_.step(id);
  const Slice slice = step.kind == StepKind::send ? step.a : step.to;
  const uint32_t first = whole_.chunk(whole_.rank_of(id), slice, 0);
  return whole_.empty(first) ? 0 : chunk_bytes_ * slice.count;
}

TileCost Simulation::sum() const {
  TileCost cost;
  for (const Rank& rank : ranks_) {
    cost.latency_us = std::max(cost.latency_us, rank.end_us);
    cost.stay_us = std::max(cost.stay_us, rank.end_us - std::max(rank.first_us, 0.0));
    cost.port_us = std::max({cost.port_us, rank.out_us, rank.in_us});
    cost.busy_us = std::max(cost.busy_us, rank.core_us);
  }
  cost.busy_us = std::max(cost.busy_us, cost.port_us);
  for (const Node& node : nodes_)
    if (!node.last_rank.empty())
      cost.busy_us =
          std::max(cost.busy_us, node.core_us / static_cast<double>(node.last_rank.size()));
  return cost;
}

}  // namespace

Pricer::Pricer(std::span<const Schedule> all, const Machine& machine) : machine_(machine) {
  HCOMM_CHECK(machine.ranks == all.size() && machine.node.size() == machine.ranks &&
                  machine.links.size() == size_t{machine.ranks} * machine.ranks,
              "{} ranks, {} schedules", machine.ranks, all.size());
  try {
    whole_ = std::make_unique<Whole>(all);
  } catch (const Fault& found) {
    fail(Code::internal, "price {}: {}", all.empty() ? "" : all[0].algorithm, found.text);
  }
}

Pricer::~Pricer() = default;

TileCost Pricer::tile(double block_bytes) const {
  return Simulation(*whole_, machine_, block_bytes / whole_->parts()).run();
}

double Pricer::predict_us(const Load& load) {
  const double all_bytes = static_cast<double>(load.block_bytes);
  const bool one = load.tile_bytes == 0 || load.tile_bytes >= load.block_bytes;
  const double tile_bytes = one ? all_bytes : static_cast<double>(load.tile_bytes);
  if (last_bytes_ != tile_bytes) {
    last_ = tile(tile_bytes);
    last_bytes_ = tile_bytes;
  }
  const double further = one ? 0 : all_bytes / tile_bytes - 1;
  const double pace_us = std::max(last_.busy_us, last_.stay_us / std::max(load.window, 1u));
  return last_.latency_us + further * pace_us;
}

double predict_us(std::span<const Schedule> all, const Machine& machine, const Load& load) {
  return Pricer(all, machine).predict_us(load);
}

}  // namespace hcomm::schedule
