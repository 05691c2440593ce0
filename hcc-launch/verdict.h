// SPDX-License-Identifier: Apache-2.0
// Who failed first, who was ended by us, and so: the exit code. Plain bookkeeping without a process
// or a clock, fed by front in the order of events, read by the report.
//
// Exit code: of the first cause. A rank that failed: its code, or 128 + its signal. A time limit or
// a job that could never go on: 124. A signal to the launcher: the first code other than 0 that a
// rank ends with, where a rank that needed SIGKILL counts as ended by the signal. Else 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hcc-launch/agent/agent.h"

namespace hcomm::launch {

enum class Cause : uint8_t {
  none,
  rank_failed,
  timeout,
  user_signal,
  left_before_init,  // a rank ended well without joining those that wait for it
  start_failed,
  launcher_failed,
};

class Verdict {
 public:
  explicit Verdict(uint32_t ranks) : ranks_(ranks) {}

  // `detail`: the signal of user_signal, the rank that left, the code of start_failed. The first
  // cause stays; true when this is it.
  bool job_ends(Cause cause, int detail);
  // True when this is the first rank that failed by itself, and so the cause of what follows.
  bool rank_ended(uint32_t rank, const RankEnd& end);

  Cause cause() const { return cause_; }
  int detail() const { return detail_; }
  bool ending() const { return cause_ != Cause::none; }
  std::optional<uint32_t> first_failure() const { return first_; }
  const std::optional<RankEnd>& end_of(uint32_t rank) const { return ranks_[rank].end; }
  bool ended_by_launcher(uint32_t rank) const { return ranks_[rank].by_launcher; }
  bool failed(uint32_t rank) const;  // by itself
  int exit_code() const;

 private:
  struct Rank {
    std::optional<RankEnd> end;
    bool by_launcher = false;
  };

  bool ends_as_told(const RankEnd& end) const;
  int code_after_signal() const;

  std::vector<Rank> ranks_;
  std::vector<uint32_t> order_;  // in which they ended
  std::optional<uint32_t> first_;
  Cause cause_ = Cause::none;
  int detail_ = 0;
};

// "SIGSEGV (11)"
std::string signal_text(int signo);
// "died of SIGSEGV (11), core dumped", "exited with code 3", "ended well"
std::string end_text(const RankEnd& end);
int code_of(const RankEnd& end);

}  // namespace hcomm::launch
