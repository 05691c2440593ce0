// SPDX-License-Identifier: Apache-2.0
// The part of the launcher that stands on the ranks' host: starts them, reads what they write line
// by line, sees them end, signals them, and finds whatever they left behind. It tells the front by
// AgentEvents, and decides nothing: what is a failure, who is told to end and when, how a line
// looks is the front's. Owned by the front, which is in the same process for a job of one host.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "hcc-launch/agent/handout.h"
#include "hcc-launch/agent/lines.h"
#include "hcc-launch/agent/loop.h"
#include "hcc-launch/agent/spawn.h"
#include "hcc-launch/job.h"

namespace hcomm::launch {

inline constexpr size_t kReadBytes = 64 << 10;

struct RankEnd {
  int code = 0;    // of exit
  int signal = 0;  // that ended it; 0: it exited
  bool dumped_core = false;
  int64_t at_ns = 0, wall_ns = 0;
  bool good() const { return code == 0 && signal == 0; }
};

class AgentEvents {
 public:
  virtual ~AgentEvents() = default;
  virtual void on_output(uint32_t rank, Stream stream, const Piece& piece) = 0;
  virtual void on_end(uint32_t rank, const RankEnd& end) = 0;  // in the order in which they ended
};

// A rank could not be started; nothing is wrong with the launcher.
struct StartFailure {
  int exit_code;  // 126 or 127: the program cannot be executed; 125: a step before
  std::string text;
};

struct AgentSettings {
  int64_t held_ms = kHeldMs;  // how long an unfinished line waits for its end
  sigset_t signal_mask;       // that the ranks begin with
  rlimit open_files;          // likewise
};

class Agent {
 public:
  Agent(Loop& loop, const Job& job, AgentEvents& events, const AgentSettings& settings);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  void start();  // all ranks. Throws StartFailure when one cannot, Error; others may run then
  std::vector<UniqueFd> take_inputs();  // StdinTo::all: the writing ends, by rank

  uint32_t living() const { return living_; }
  bool alive(uint32_t rank) const { return ranks_[rank].alive; }
  pid_t pid(uint32_t rank) const { return ranks_[rank].pid; }
  const void* area(uint32_t rank) const { return handout_.area(rank); }
  const std::string& root() const { return handout_.root(); }

  // `except_foreground` leaves out what shares our process group, and so was told with it.
  enum class Reach : uint8_t { every, except_foreground };
  void signal_ranks(int signo, Reach reach);  // to the group of each rank, as a terminal does
  void signal_tree(int signo, Reach reach = Reach::every);  // to every process of the job, once
  void reap();             // after SIGCHLD: orphans of the job, and ranks without a pidfd
  void reap_ranks();       // reports the ends that have happened by now
  bool leftovers() const;  // processes of ranks that have all ended
  bool anything_left() const { return living_ != 0 || leftovers(); }
  bool finished();  // no process, and all output has been passed on

  void pause(Stream stream);
  void resume(Stream stream);
  void close_output(Stream stream);  // nobody takes it any more: the ranks get SIGPIPE

 private:
  struct Channel {
    UniqueFd fd;
    LineSplitter lines;
    int64_t held_since_ns = 0;
  };
  struct Rank {
    pid_t pid = -1;
    UniqueFd pidfd;
    bool alive = false, own_group = true;
    Channel channels[2];
  };
  struct RankText;  // arguments and environment as exec wants them

  void start_rank(uint32_t rank);
  void open_channels(Rank& rank, UniqueFd (&writing)[2]);
  int input_for(uint32_t rank, UniqueFd& holder);
  void watch_rank(uint32_t rank);
  void rank_ready(uint32_t rank);
  void rank_ended(uint32_t rank, int status);
  void reap_orphans();
  void watch_channel(uint32_t rank, Stream stream);
  bool read_channel(uint32_t rank, Stream stream);  // false: it is empty, or at its end
  void read_rest(uint32_t rank, Stream stream);
  void close_channel(uint32_t rank, Stream stream);
  void flush_held();
  void drain();
  Channel& channel(uint32_t rank, Stream stream) {
    return ranks_[rank].channels[static_cast<size_t>(stream)];
  }

  Loop& loop_;
  const Job& job_;
  AgentEvents& events_;
  AgentSettings settings_;
  Handout handout_;
  std::vector<Rank> ranks_;
  std::vector<UniqueFd> inputs_;
  uint32_t living_ = 0, open_channels_ = 0;
  bool paused_[2] = {};
  Loop::TimerId flush_timer_ = 0;
  std::vector<char> buffer_;
};

}  // namespace hcomm::launch
