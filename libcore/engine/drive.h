// SPDX-License-Identifier: Apache-2.0
// The only loop that waits. It moves every operation that it is given until all have ended, in the
// thread that calls it: one operation, or those of several communicators, or of several ranks. What
// the thread has started earlier and does not wait for is moved along.
//
// Waiting: with a core a rank it spins; where ranks exceed cores it yields at once; after about a
// millisecond without progress it sleeps in poll until something that it waits for moves. In the
// thread of a stream it sleeps after 50 us, as it does for a while after a spin was preempted
// (other programs need the core, or ranks that are no ranks of ours); then it also yields. Time is
// read only while nothing moves.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hcomm::engine {

// Something that is driven: an operation in flight. Implemented by comm.
class Party {
 public:
  virtual ~Party() = default;
  // Moves what can be moved; true when anything did. Never waits.
  virtual bool advance() = 0;
  virtual bool finished() const = 0;
  // Called about every millisecond while nothing moves, with the time that counts since the last
  // call, or since the wait began, and since anything moved: checks for failures elsewhere and for
  // deadlines, reports long waits.
  virtual void idle(int64_t passed_ns, int64_t since_progress_ns) = 0;
  // As transport::Endpoint's, for all that this operation may wait for.
  virtual bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) = 0;
  virtual void after_sleep() = 0;
};

// The time of a wait: since its begin, and since anything moved. A gap between two looks at the
// clock that no wait of ours explains counts for no deadline, since nobody was waited for: data
// moved all the time, or the caller computed, or the process was stopped, or the machine slept.
class Watch {
 public:
  void progressed() { progress_ns_ = 0; }
  // Nothing moved: about every millisecond that is told to those of the parties that have not
  // finished; always when that has lasted for patience_ns: then true.
  bool look(std::span<Party* const> parties, int64_t patience_ns);
  void slept(int64_t at_most_ns);  // since the last look

 private:
  void skip_gap(int64_t now, int64_t allowed_ns);
  int64_t progress_ns_ = 0, last_ns_ = 0, told_ns_ = 0, counted_from_ns_ = 0;
};

struct Patience {
  bool crowded = false;           // more ranks than cores: give way instead of spinning
  int64_t spin_ns = 1'000'000;    // before sleeping
};

// Said once by a thread that drives for another, which may compute meanwhile and need the core: it
// sleeps after some microseconds, whatever patience it is given.
void drive_in_background();

// Until the first `wanted` have finished; the others move meanwhile.
void drive(std::span<Party* const> parties, const Patience& patience, size_t wanted);
inline void drive(std::span<Party* const> parties, const Patience& patience) {
  drive(parties, patience, parties.size());
}

}  // namespace hcomm::engine
