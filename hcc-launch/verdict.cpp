// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/verdict.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace hcomm::launch {

bool Verdict::job_ends(Cause cause, int detail) {
  if (ending()) return false;
  cause_ = cause;
  detail_ = detail;
  return true;
}

// As somebody ends who was told to: by our signal, or by the code that stands for it. Any other
// end, a crash or a code of its own, is the rank's.
bool Verdict::ends_as_told(const RankEnd& end) const {
  const int code = code_of(end);
  return code == 128 + SIGTERM || code == 128 + SIGKILL ||
         (cause_ == Cause::user_signal && code == 128 + detail_);
}

bool Verdict::rank_ended(uint32_t rank, const RankEnd& end) {
  ranks_[rank].end = end;
  ranks_[rank].by_launcher = ending() && ends_as_told(end);
  order_.push_back(rank);
  if (first_ || ending() || !failed(rank)) return false;
  first_ = rank;
  return true;
}

bool Verdict::failed(uint32_t rank) const {
  const Rank& each = ranks_[rank];
  return each.end && !each.end->good() && !each.by_launcher;
}

int Verdict::code_after_signal() const {
  for (const uint32_t rank : order_) {
    const RankEnd& end = *ranks_[rank].end;
    if (end.signal == SIGKILL && ranks_[rank].by_launcher) return 128 + detail_;
    if (!end.good()) return code_of(end);
  }
  return 0;
}

int Verdict::exit_code() const {
  switch (cause_) {
    case Cause::timeout:
    case Cause::left_before_init:
      return kExitTimeout;
    case Cause::start_failed:
      return detail_;
    case Cause::launcher_failed:
      return kExitLauncher;
    case Cause::user_signal:
      if (!first_) return code_after_signal();
      break;
    case Cause::none:
    case Cause::rank_failed:
      break;
  }
  return first_ ? code_of(*ranks_[*first_].end) : 0;
}

std::string signal_text(int signo) {
  const char* name = sigabbrev_np(signo);
  if (name != nullptr) return fmt::format("SIG{} ({})", name, signo);
  return fmt::format("signal {}", signo);
}

std::string end_text(const RankEnd& end) {
  if (end.signal != 0)
    return fmt::format("died of {}{}", signal_text(end.signal),
                       end.dumped_core ? ", core dumped" : "");
  return end.code == 0 ? "ended well" : fmt::format("exited with code {}", end.code);
}

int code_of(const RankEnd& end) {
  return end.signal != 0 ? 128 + end.signal : end.code;
}

}  // namespace hcomm::launch
