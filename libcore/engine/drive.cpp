// SPDX-License-Identifier: Apache-2.0
#include "engine/drive.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/thread.h"

namespace hcomm::engine {

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kUnexplained_ns = 500 * kMillisecond;
constexpr int64_t kBackgroundSpin_ns = 50'000;  // about what waking up costs
// In ticks, one to some four of which are a nanosecond: no round of a spin takes so long, and how
// long a core is then taken to be wanted by others.
constexpr uint64_t kPreempted = 300'000, kContended = 2'500'000'000;
constexpr int kLongestSleep_ms = 100;

// Of the sleep that this thread is in: kept for its memory.
thread_local std::vector<pollfd> t_descriptors;
thread_local bool t_background = false;
thread_local uint64_t t_contended_until = 0;  // ticks

class Wait {
 public:
  Wait(std::span<Party* const> parties, const Patience& patience)
      : parties_(parties), patience_(patience), yields_(patience.crowded) {}

  void progressed() {
    rounds_ = 0;
    seen_ = 0;
    watch_.progressed();
  }

  void idle() {
    rounds_++;
    if (yields_)
      sched_yield();
    else
      pause_core();
    if (rounds_ % (yields_ ? 16 : 512) == 0 && watch_.look(parties_, spin_ns())) sleep();
  }

  // Before each round: was the core taken away from the spin? Then somebody else needs it. What was
  // waited for has often come meanwhile, so the round may well move something.
  void notice_preemption() {
    if (rounds_ < 8 || yields_) return;
    const uint64_t now = ticks();
    if (seen_ != 0 && now - seen_ > kPreempted) {
      t_contended_until = now + kContended;
      yields_ = true;
    }
    seen_ = now;
  }

 private:
  // How long to spin, or to yield, before sleeping.
  int64_t spin_ns() {
    const bool contended = ticks() < t_contended_until;
    yields_ = patience_.crowded || contended;
    return t_background || contended ? std::min(patience_.spin_ns, kBackgroundSpin_ns)
                                     : patience_.spin_ns;
  }

  void sleep() {
    std::vector<pollfd>& descriptors = t_descriptors;
    descriptors.clear();
    int cap_ms = kLongestSleep_ms;
    bool quiet = true;
    size_t prepared = 0;
    for (; prepared < parties_.size() && quiet; prepared++)
      if (!parties_[prepared]->finished())
        quiet = parties_[prepared]->prepare_sleep(descriptors, cap_ms);
    if (quiet) ::poll(descriptors.data(), descriptors.size(), cap_ms);
    for (size_t i = 0; i < prepared; i++)
      if (!parties_[i]->finished()) parties_[i]->after_sleep();
    watch_.slept(cap_ms * kMillisecond);
    seen_ = 0;
  }

  std::span<Party* const> parties_;
  const Patience& patience_;
  bool yields_;
  uint64_t seen_ = 0;  // ticks before the last round; 0: something moved since
  Watch watch_;
  uint64_t rounds_ = 0;
};

}  // namespace

bool Watch::look(std::span<Party* const> parties, int64_t patience_ns) {
  const int64_t now = now_ns();
  if (last_ns_ == 0) counted_from_ns_ = last_ns_ = told_ns_ = now;
  skip_gap(now, kUnexplained_ns);
  if (progress_ns_ == 0) progress_ns_ = now;
  const bool patient = now - progress_ns_ < patience_ns;
  if (patient && now - told_ns_ < kMillisecond) return false;
  told_ns_ = now;
  const int64_t passed_ns = now - counted_from_ns_;
  counted_from_ns_ = now;
  for (Party* party : parties)
    if (!party->finished()) party->idle(passed_ns, now - progress_ns_);
  return !patient;
}

void Watch::skip_gap(int64_t now, int64_t allowed_ns) {
  const int64_t gap = now - last_ns_;
  last_ns_ = now;
  if (gap < allowed_ns) return;
  counted_from_ns_ += gap;
  if (progress_ns_ != 0) progress_ns_ += gap;
}

void Watch::slept(int64_t at_most_ns) { skip_gap(now_ns(), kUnexplained_ns + at_most_ns); }

void drive_in_background() { t_background = true; }

void drive(std::span<Party* const> parties, const Patience& patience, size_t wanted) {
  Wait wait(parties, patience);
  for (;;) {
    wait.notice_preemption();
    bool moved = false, open = false;
    for (size_t i = 0; i < parties.size(); i++) {
      Party& party = *parties[i];
      if (party.finished()) continue;
      moved |= party.advance();
      open |= i < wanted && !party.finished();
    }
    if (!open) return;
    if (moved)
      wait.progressed();
    else
      wait.idle();
  }
}

}  // namespace hcomm::engine
