// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the hub in rank 0's process: the control plane of a job. Small messages
// only: what ranks must know of one another before they can connect, who failed, who is stuck in
// which call. Each rank has one, also where several share a process. Owned by the Line, which the
// communicators of a rank share; called by them from any thread, while the service thread reads.
// Absent: payload, retries, a tree (a star serves some thousand ranks).
//
// A connection that ends without a goodbye is a death: the hub tells all ranks, and a hub that dies
// is noticed by each. A stopped process is not dead.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/control/board.h"
#include "comm/control/rendezvous.h"
#include "comm/control/service.h"

namespace hcomm::comm {

struct Join {
  Root root;
  uint32_t rank = 0, ranks = 1;
  Deadline deadline;
  uint32_t library_version = 0;
  // Settings that must be equal on all ranks, "HCOMM_TILE=64KiB HCOMM_ALGO=ring".
  std::string settings;
};

struct Member {
  std::string host;
  uint32_t pid = 0;
};

// A communicator, as its exchanges need it.
struct Circle {
  uint64_t communicator = 0;
  std::string_view name;              // for messages
  uint32_t index = 0;                 // of this rank among the members
  std::span<const uint32_t> members;  // ranks of the job
};

class Control {
 public:
  // Returns when all ranks have joined. A late root is waited for. Throws Error: timeout with "k of
  // n joined, missing ranks: ...", invalid_usage where ranks disagree, peer_failed where the root
  // has gone or a rank left meanwhile.
  static std::unique_ptr<Control> join(Service& service, const Join& join);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();  // leaves, if that was not done

  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }
  const std::vector<Member>& members() const { return members_; }  // by rank
  // Which set of ranks of its hub this one is, from 0: makes ids differ where a job joins again.
  uint32_t world() const { return world_; }
  std::string member_text(uint32_t rank) const;  // "rank 3 (host node7, pid 4711)"

  // All-gather among the members of a communicator: all call it the same number of times; `what`
  // ("addresses") tells people what for. Returns the parts by index. Throws Error, its peer a rank
  // of this communicator: timeout naming who is missing; the failure of the communicator or of a
  // member; invalid_usage where sizes or indices disagree.
  std::vector<std::string> exchange(const Circle& circle, std::string_view what,
                                    std::string_view mine, Deadline deadline);

  // Tells all ranks. The hub passes on the first failure of a communicator only.
  void report(const Failure& failure);
  // Called in the service thread for each failure, reported here or elsewhere: once a communicator,
  // for communicator 0 once a peer. Failures so far come at once. {}: no more calls after it
  // returns. Not from the callback itself.
  using FailureCallback = std::function<void(const Failure&)>;
  void on_failure(FailureCallback callback);

  // Index of size is stuck in (or sees another label than its own for) operation `sequence`, a call
  // that `signature` describes: "all_reduce float32 sum count=100". Where members' signatures
  // differ, the hub makes that a failure of the communicator.
  void stalled(uint64_t communicator, uint32_t index, uint32_t size, uint64_t sequence,
               std::string_view signature);
  // Who of size has not said to be stuck in it. Empty also when the hub does not answer in time.
  std::vector<uint32_t> not_reported(uint64_t communicator, uint32_t size, uint64_t sequence,
                                     Deadline deadline);

  // Ends orderly: our going is no death, what happens to others concerns us no more. Waits at most
  // a second where the hub is stopped. In a forked child: nothing, as everything else.
  void leave();

 private:
  struct Waiting {  // for an answer of the hub; owned by who waits
    std::span<const uint32_t> members;  // of an exchange
    bool done = false;
    std::vector<std::string> parts;
    std::vector<uint32_t> indices;
    Failure failure{.code = Code::ok};  // why there is none
  };
  using Key = std::pair<uint64_t, uint64_t>;
  using Lock = std::unique_lock<std::mutex>;

  Control(Service& service, const Join& join, Welcomed welcomed);
  void wait_ready(Deadline deadline);
  void wait_for(Lock& lock, const Waiting& waiting, Deadline deadline);

  // in the service thread
  void receive();
  void handle(const Frame& frame);
  void handle_ready(std::string_view body);
  void handle_gathered(std::string_view body);
  void handle_not_gathered(std::string_view body);
  void handle_answer(std::string_view body);
  void handle_end();
  void deliver();

  // lock held
  void note(const Failure& failure);
  void fail_all(const Failure& failure);
  const Failure* over(const Circle& circle) const;  // why nothing is exchanged there any more

  Service& service_;
  const uint32_t rank_, ranks_;
  std::vector<Member> members_;  // both written once, before join returns
  uint32_t world_ = 0;
  Link link_;

  mutable std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  // cut: refused, or the connection is over.
  enum class State : uint8_t { joining, joined, cut, left } state_ = State::joining;
  bool hub_left_ = false;              // it said goodbye
  Failure end_{.code = Code::ok};      // why the state is cut or left
  std::map<Key, Waiting*> exchanges_;  // by communicator and round
  std::map<uint32_t, Waiting*> questions_;
  std::map<uint64_t, uint64_t> rounds_;  // of each communicator, so far
  uint32_t questions_asked_ = 0;
  std::vector<Failure> failures_;  // in order of arrival
  size_t delivered_ = 0;           // of them
  Service::Timer delivery_ = 0;
  bool delivery_due_ = false;
  std::mutex callback_mutex_;  // held while the callback runs
  FailureCallback callback_;
};

}  // namespace hcomm::comm
