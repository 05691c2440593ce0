// SPDX-License-Identifier: Apache-2.0
// A communicator: the ranks, links and plans of a group, and the life of each of its operations.
// Calls come from api, one at a time (tickets keep the order of calls over threads and streams);
// failures come from the control plane, at any time, from the service thread.
//
//   an operation:  Turn -> enter -> begin -> driven (engine/drive) -> end
//
// The first failure wins and stays: later calls return it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "comm/bound.h"
#include "comm/call.h"
#include "comm/fusion.h"
#include "comm/control/line.h"
#include "comm/links.h"
#include "comm/plans.h"
#include "comm/runtime.h"
#include "engine/drive.h"
#include "engine/executor.h"
#include "engine/traffic.h"
#include "trace/recorder.h"

namespace hcomm::comm {

// Why a communicator does not work any more, or why a call was refused.
struct Fault {
  Code code = Code::ok;
  int peer = -1;  // rank of this communicator
  uint64_t sequence = 0, bytes = 0;
  std::string operation, transport, host, text;
};

// What all ranks of a new communicator know. The control line is shared with the children of
// a split, which may outlive their parent: hence shared_ptr; the recorder likewise.
struct Membership {
  uint64_t id = 0;
  uint64_t token[2] = {0, 0};
  uint32_t rank = 0;
  std::vector<uint32_t> members;  // ranks of the job, by rank of the communicator
  std::shared_ptr<Line> line;
  std::shared_ptr<trace::Recorder> recorder;
  // Of virtual communicators, and of the one that they are made of.
  std::shared_ptr<engine::Traffic> traffic;
  int priority = 0;
};

class Communicator final : public engine::Party {
 public:
  // Connects to all members. Collective. Throws Error.
  Communicator(Runtime& runtime, Membership membership, Config config);
  ~Communicator() override;

  uint32_t rank() const { return membership_.rank; }
  uint32_t ranks() const { return static_cast<uint32_t>(membership_.members.size()); }
  const Config& config() const { return config_; }
  bool of_this_process() const { return generation_ == process_generation(); }

  // No call is under way or waits for its turn.
  bool idle() const { return serving_.load() == next_ticket_.load(); }

  // -- one operation: begin, drive until finished(), end. In its turn only. What keeps it from
  // beginning fails the communicator: the peers will wait for us.
  void begin(const Call& call);
  void begin_exchange(std::span<const Call> calls);  // sends and receives, started together
  Code end();
  // Fails the communicator with the exception in flight: what was to begin cannot.
  void cannot_begin();
  // Of calls, for those who merge them. In turn only.
  Prices prices();
  // All of it, in this thread.
  Code run(const Call& call);
  Code run(std::span<const Call> exchange);
  const engine::Patience& patience() const { return patience_; }

  // -- Party
  bool advance() override {
    if (finished_) [[unlikely]] return false;  // what the executor has is an earlier operation
    if (held()) [[unlikely]] return false;
    if (executor().advance()) {
      if (membership_.traffic) [[unlikely]] membership_.traffic->moved(membership_.priority);
      return true;
    }
    if (executor().failed()) [[unlikely]] finished_ = true;
    return false;
  }
  bool finished() const override { return executor().done() || finished_; }
  void idle(int64_t passed_ns, int64_t since_progress_ns) override;
  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) override;
  void after_sleep() override;

  // -- failures
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  Fault fault() const;
  void refuse(Fault fault);  // remembered as the last error, not sticky
  void abort(std::string_view why);

  // -- children and queries
  std::unique_ptr<Communicator> split(int color, int key, const Config& config);
  // Of the ranks that are not among `excluded` (no duplicates); called by these, dead ones are
  // excluded. Also when this communicator is broken.
  std::unique_ptr<Communicator> shrink(std::span<const uint32_t> excluded, const Config& config);
  // Of the same ranks, in an order of its own, with connections of its own that carry few bytes at
  // once where its priority is the lowest: others wait for no more than these. Collective; name and
  // priority are equal on all ranks, or invalid_usage.
  std::unique_ptr<Communicator> make_virtual(int priority, Config config);
  std::string explain(const Call& call);
  // Waits until every call has ended; each does by its deadline.
  Code finalize();

 private:
  friend class Turn;
  uint64_t take_ticket() { return next_ticket_.fetch_add(1, std::memory_order_relaxed); }
  bool serves(uint64_t ticket) const {
    return serving_.load(std::memory_order_acquire) == ticket;
  }
  void enter(uint64_t ticket) {
    if (!serves(ticket)) [[unlikely]] wait_for_turn(ticket);
  }
  void leave() {
    // In one order with the waiter's count: either it sees our store, or we see that it waits.
    serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (queued_.load(std::memory_order_seq_cst) > 0) [[unlikely]] serving_.notify_all();
  }
  void wait_for_turn(uint64_t ticket);
  bool may_begin();
  bool held() const {
    return membership_.traffic && membership_.traffic->holds(membership_.priority);
  }
  Fault describe_fault();
  void show_waiting(int64_t since_progress_ns);
  void record();
  engine::Executor& executor() { return bound_->executor(); }
  const engine::Executor& executor() const { return bound_->executor(); }
  void on_failure(const Failure& failure);
  void fail_with(const Failure& failure);
  Failure failure_of(Code code, int peer, std::string text) const;
  void explain_failed_step();
  void time_out(int64_t waited_ns);
  // What a call was, as ranks compare it.
  struct Said {
    size_t count = 0;
    uint32_t root = 0;
    schedule::Collective collective{};
    Type type{};
    Op op{};
    bool varied = false;
    uint32_t cut = 0;  // of small ones that travel as one
  };
  static Said said(const Call& call) {
    return {call.count, call.root, call.collective, call.type, call.op, call.varied,
            static_cast<uint32_t>(call.cut)};
  }
  static std::string signature_text(const Said& said);
  void tell_calls();
  std::string operation_text() const;
  std::string member_text(uint32_t rank) const;
  Control& control() { return membership_.line->control(); }
  void connect();
  void agree_on_choice(Deadline deadline);
  Membership child(uint64_t number, std::span<const uint32_t> chosen) const;
  uint64_t credit_bytes() const;
  bool wait_for_verdict(int64_t ms);

  Runtime& runtime_;
  const uint32_t generation_ = process_generation();
  Membership membership_;
  Config config_;
  UniqueFd wake_;  // eventfd: something failed elsewhere
  std::unique_ptr<Links> links_;
  std::unique_ptr<Plans> plans_;
  engine::Patience patience_;
  Around around_;
  std::unique_ptr<BoundCalls> calls_;

  // the operation in flight, or the last
  Call call_;
  Bound* bound_ = nullptr;
  size_t exchanged_ = 0;    // sends and receives of it
  std::atomic<uint64_t> sequence_{0};  // of collectives; abort reads it from any thread
  trace::OpRecord* record_ = nullptr;
  static constexpr size_t kSaid = 4;
  std::array<Said, kSaid> said_;  // of the last collectives, by sequence
  bool finished_ = false, reported_stall_ = false;
  int shown_peer_ = -1;             // waits for, as the recorder shows it
  int64_t shown_progress_ns_ = 0;   // when it was looked at: the time since anything moved
  int64_t waited_ns_ = 0;           // in all waits of the operation
  bool failed_operations_ = false;  // any of them, ever
  bool in_traffic_ = false;

  std::atomic<uint64_t> next_ticket_{0}, serving_{0};
  std::atomic<uint32_t> queued_{0};
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;  // fault_
  std::condition_variable verdict_;
  Fault fault_;
  uint64_t listener_ = 0;
  uint32_t splits_ = 0;
  std::map<uint64_t, uint32_t> shrinks_;  // so far, of each set of excluded ranks
};

// A place in the order of a communicator's calls, taken when it is made, given up at its end,
// entered or not. What is in front has deadlines of its own.
class Turn {
 public:
  explicit Turn(Communicator& communicator)
      : communicator_(communicator), ticket_(communicator.take_ticket()) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    enter();
    communicator_.leave();
  }
  bool has_come() const { return communicator_.serves(ticket_); }
  void enter() {
    if (!entered_) communicator_.enter(ticket_);
    entered_ = true;
  }

 private:
  Communicator& communicator_;
  const uint64_t ticket_;
  bool entered_ = false;
};

}  // namespace hcomm::comm
