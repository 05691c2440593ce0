// SPDX-License-Identifier: Apache-2.0
// The calls of a group as one thing that can run, again and again: a batch for each communicator,
// driven together in one thread. What a thread starts and does not wait for at once is under way:
// it is moved along by whatever this thread waits for next. Made by the end of a group, and by
// plans.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "api/group.h"
#include "comm/batch.h"
#include "engine/stream.h"

namespace hcomm::api {

class Together {
 public:
  explicit Together(std::vector<Group::Item> items);
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  // Waits for what is under way.
  ~Together();

  const std::vector<Group::Item>& items() const { return items_; }
  // Takes its place among the calls of each communicator. Holding order().
  void start();
  Code run();  // what was started, to its end

  // The same without waiting: `begin` moves it once, in this thread, and leaves it under way;
  // `settle` waits for it there.
  void begin();
  Code settle();
  // Without waiting; true when it has finished. Deadlines hold as they do for a wait.
  bool advance();
  // What its thread leaves behind when it ends: fails the communicators, which nobody would move.
  void abandon();
  bool finished() const;
  // The first error, when it has finished.
  Code code() const;

 private:
  engine::Patience patience() const;
  Code settled();

  std::vector<Group::Item> items_;  // keeps the calls
  std::deque<comm::Batch> batches_;
  std::vector<engine::Party*> parties_;  // the batches
  engine::Watch watch_;                  // of advance
};

// Held while a thread takes its places in several communicators and streams: all threads take them
// in one order, so no two wait for one another.
std::mutex& order();

bool on_stream(const Group::Item& item);
// Starts it on the streams of its items and returns the mark behind it; without any, null: it waits
// to be run in this thread.
std::shared_ptr<engine::Mark> start_together(const std::shared_ptr<Together>& together);

// -- what this thread has under way
bool any_underway();
// Moves it all without waiting; how many are left.
size_t progress();
// Waits for all of it: before the thread waits for a thing that may be behind it.
void settle_all();

}  // namespace hcomm::api
