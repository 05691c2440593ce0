// SPDX-License-Identifier: Apache-2.0
// Rank 0's end of the control plane: listens, lets in who proves to belong to the job, and then is
// the middle of the star. Owned by the Runtime of the process that made the id or is rank 0; lives
// in its service thread; its destructor waits a while for the goodbyes of the ranks. Strangers cost
// at most 64 connections of 4 KiB for 2 seconds. Where there is no next world the listeners are
// closed as soon as all ranks are in. Absent: payload, and rank 0's own part (rank 0 has a Control
// like every other rank).
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "comm/control/board.h"
#include "comm/control/rendezvous.h"
#include "comm/control/service.h"

namespace hcomm::comm {

class Hub {
 public:
  // How many sets of ranks it serves, one after the other: the next can join when all ranks of the
  // last have left.
  enum class Worlds : uint8_t { one, many };

  // A new job: listens on the usable addresses of this host. Throws Error(system |
  // invalid_argument).
  static std::unique_ptr<Hub> listen(Service& service, const Config& config,
                                     Worlds worlds = Worlds::one);
  // Listens on those addresses of a root that are this host's, or on a listening socket that the
  // launcher made. Throws Error(system).
  static std::unique_ptr<Hub> listen_at(Service& service, const Root& root, UniqueFd listener,
                                        Worlds worlds);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  // Waits up to 2 s for the goodbyes of ranks that have joined, unless await_goodbyes has done so,
  // then says goodbye to the others. Not from the service thread.
  ~Hub();
  void await_goodbyes(Deadline deadline);
  static Deadline goodbyes_end();  // how long they are waited for, from now
  // Nobody will need it any more: all ranks have left, or the join of its only world has failed.
  bool over() const;

  const Root& root() const { return root_; }
  UniqueId id() const { return encode_id(root_); }

 private:
  struct Guest {  // connected, not known; or refused, until it has read that
    std::unique_ptr<Link> link;
    int64_t until_ns = 0;
    bool refused = false;
    std::string hello;  // of one who waits for the next world
  };
  struct Seat {                  // of a rank
    std::unique_ptr<Link> link;  // none: not joined, or gone
    Hello hello;
    enum class State : uint8_t { empty, joined, left, dead } state = State::empty;
  };
  using Guests = std::list<Guest>;
  enum class Phase : uint8_t { joining, ready, failed };

  Hub(Service& service, Root root, std::vector<UniqueFd> listeners, Worlds worlds);
  void close();  // in the service thread

  // joining (hub.cpp)
  void accept_from(int listener);
  void pause_listeners(int64_t ms);
  void resume_listeners();
  void out_of_descriptors(int error);
  Guests::iterator host(std::unique_ptr<Link> link);
  void hear_guest(Guests::iterator guest);
  void greet(Guests::iterator guest, std::string_view body);
  bool is_early(const Hello& hello) const;
  std::string disagreement(const Hello& hello) const;
  void seat(Guests::iterator guest, Hello hello);
  void refuse(Guests::iterator guest, const Refusal& refusal);
  void fail_join(Code code, const std::string& text);
  Refusal failed_before() const;
  std::string joined_text() const;  // "3 of 4 joined, missing: rank 2"
  void announce();
  void close_listeners();
  bool world_is_over() const;
  void refuse_early_if_broken();
  void open_next_world();
  void need_tick(int64_t ms);
  void tick();

  // ready (hub_relay.cpp)
  void hear(uint32_t rank);
  void handle(uint32_t rank, const Frame& frame);
  void lost(uint32_t rank, std::string how);  // by value: the link that said so goes
  void left(uint32_t rank);
  void fail(const Failure& failure);
  void deliver(const Board::Letters& letters);
  void look_for_mismatches();
  void count_leavers();
  std::string rank_text(uint32_t rank) const;

  static constexpr int64_t kTickMs = 50;

  Service& service_;
  const Root root_;
  const std::string job_;  // fingerprint
  const Worlds worlds_;
  // The service thread's own, all that follows up to the mutex.
  std::vector<UniqueFd> listeners_;
  Guests guests_;
  std::vector<Seat> seats_;  // by rank; empty until the first hello
  Phase phase_ = Phase::joining;
  uint32_t world_ = 0;       // sets of ranks so far
  Refusal failed_;           // why, when phase_ is failed
  int64_t deadline_ns_ = 0;  // of joining: the earliest of the ranks'
  int64_t resume_ns_ = 0;    // when paused listeners may go on; 0: not paused
  std::optional<Board> board_;
  Service::Timer tick_ = 0;
  bool ticking_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool all_left_ = true;
  bool over_ = false;
  bool awaited_ = false;
};

}  // namespace hcomm::comm
