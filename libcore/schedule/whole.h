// SPDX-License-Identifier: Apache-2.0
// A collective as check and cost see it: the steps, chunks and messages of all ranks, numbered
// through in flat arrays. Internal to this folder. Making a Whole proves that it is one: every
// index in range, lengths kept, every send met by its receive; what uses it may rely on that.
// Absent: any use of what the Builder knows; all is derived from the steps.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::schedule {

// What is wrong with the schedules; caught by check() and by who prices them.
struct Fault {
  std::string text;
};
template <typename... Args>
[[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault{fmt::format(format, std::forward<Args>(args)...)};
}

struct Message {
  uint32_t send = 0, recv = 0;  // steps
};

class Whole {
 public:
  explicit Whole(std::span<const Schedule> all);  // throws Fault

  uint32_t ranks() const { return static_cast<uint32_t>(all_.size()); }
  const Schedule& of(uint32_t rank) const { return all_[rank]; }
  const Shape& shape() const { return all_[0].shape; }
  uint32_t parts() const { return all_[0].parts; }

  // Steps: those of rank r are first_step(r) up to first_step(r + 1).
  uint32_t steps() const { return first_step_.back(); }
  uint32_t first_step(uint32_t rank) const { return first_step_[rank]; }
  uint32_t rank_of(uint32_t step) const { return rank_of_[step]; }
  uint32_t index_of(uint32_t step) const { return step - first_step_[rank_of_[step]]; }
  const Step& step(uint32_t step) const { return of(rank_of(step)).steps[index_of(step)]; }
  // Steps of the rank that need this one.
  std::span<const uint32_t> dependents_of(uint32_t step) const {
    return {dependents_.data() + first_dependent_[step],
            first_dependent_[step + 1] - first_dependent_[step]};
  }
  std::string text(uint32_t step) const;  // "rank 1 step 3 (recv tmp[0] from 0)"

  // Chunks: those of a rank's input, output and scratch follow one another.
  uint32_t chunks() const { return first_chunk_.back(); }
  uint32_t first_chunk(uint32_t rank, uint16_t buffer) const {
    return first_chunk_[rank * 3 + buffer];
  }
  uint32_t chunk(uint32_t rank, Slice slice, uint32_t i) const {
    return first_chunk(rank, slice.buffer) + slice.chunk + i;
  }
  bool empty(uint32_t chunk) const { return length_[chunk] == 0; }  // a token
  // The chunk that stands for this one's memory: another one in place, else itself.
  uint32_t memory(uint32_t chunk) const { return memory_[chunk]; }

  // Messages: those of a channel (ordered pair of ranks) follow one another in the order of their
  // sends, which is that of their receives.
  uint32_t channel(uint32_t from, uint32_t to) const { return from * ranks() + to; }
  uint32_t channels() const { return ranks() * ranks(); }
  uint32_t first_message(uint32_t channel) const { return first_message_[channel]; }
  uint32_t message_count(uint32_t channel) const {
    return first_message_[channel + 1] - first_message_[channel];
  }
  uint32_t messages() const { return first_message_.back(); }
  const Message& message(uint32_t id) const { return messages_[id]; }
  uint32_t channel_of(const Message& message) const {
    return channel(rank_of(message.send), rank_of(message.recv));
  }
  // Messages of a step: one a peer for a send, one for a receive, else none.
  std::span<const uint32_t> messages_of(uint32_t step) const {
    return {links_.data() + first_link_[step], first_link_[step + 1] - first_link_[step]};
  }

 private:
  void number_steps();
  void reverse_needs();
  void number_chunks();
  void measure_rank(uint32_t rank);
  void check_steps(uint32_t rank) const;
  void check_slice(uint32_t step, Slice slice) const;
  void check_peers(uint32_t step) const;
  void check_lengths(uint32_t step, Slice to, Slice from) const;
  void match();
  void meet(const Message& message) const;

  std::span<const Schedule> all_;
  std::vector<uint32_t> first_step_, rank_of_;
  std::vector<uint32_t> first_dependent_, dependents_;
  std::vector<uint32_t> first_chunk_, length_, memory_;
  std::vector<uint32_t> first_message_;
  std::vector<Message> messages_;
  std::vector<uint32_t> first_link_, links_;
};

}  // namespace hcomm::schedule
