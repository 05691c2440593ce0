// SPDX-License-Identifier: Apache-2.0
// Proof 3. Of two steps of a rank that touch the same memory, one writing, the later must come
// after the earlier by needs alone: a step's accesses last from its start until it is done, and a
// send is done only when its peers have read the memory, so this covers peers too. Order through
// messages does not count: a send may be done before its peer's receive.
#include "schedule/check_parts.h"

namespace hcomm::schedule {
namespace {

constexpr uint32_t kNone = ~0u;

class Races {
 public:
  explicit Races(const Whole& whole)
      : whole_(whole), memory_(whole.chunks()), needed_by_(whole.steps(), kNone) {}
  void check_rank(uint32_t rank);

 private:
  struct Memory {                                   // indices of steps
    uint32_t writer = kNone, first_reader = kNone;  // readers since the writer: a list
    uint32_t written_at = 0;  // place in the slice that the current step writes
  };
  struct Reader {
    uint32_t step, next;
  };

  void read(uint32_t step, Slice slice);
  void write(uint32_t step, Slice slice);
  void overlap(uint32_t step, Slice from);
  void order(uint32_t earlier, uint32_t later);
  void close();

  const Whole& whole_;
  uint32_t rank_ = 0;
  std::vector<Memory> memory_;
  std::vector<Reader> readers_;
  std::vector<uint32_t> needed_by_;  // the last step seen that needs this one directly
  std::vector<uint64_t> before_;     // a row of bits a step; made when direct needs do not decide
  size_t row_words_ = 0;
};

void Races::check_rank(uint32_t rank) {
  rank_ = rank;
  readers_.clear();
  before_.clear();
  const uint32_t first = whole_.first_step(rank), end = whole_.first_step(rank + 1);
  for (uint32_t id = first; id < end; id++) {
    const Step& step = whole_.step(id);
    for (const uint32_t need : whole_.of(rank).needs_of(step))
      needed_by_[first + need] = id - first;
    const bool reads = step.kind != StepKind::recv, writes = step.kind != StepKind::send;
    if (reads) read(id - first, step.a);
    if (step.kind == StepKind::reduce) read(id - first, step.b);
    if (writes) write(id - first, step.to);
    if (reads && writes) overlap(id - first, step.a);
    if (step.kind == StepKind::reduce) overlap(id - first, step.b);
  }
}

void Races::read(uint32_t step, Slice slice) {
  for (uint32_t i = 0; i < slice.count; i++) {
    const uint32_t id = whole_.chunk(rank_, slice, i);
    if (whole_.empty(id)) continue;
    Memory& memory = memory_[whole_.memory(id)];
    if (memory.writer != kNone) order(memory.writer, step);
    readers_.push_back({step, memory.first_reader});
    memory.first_reader = static_cast<uint32_t>(readers_.size() - 1);
  }
}

void Races::write(uint32_t step, Slice slice) {
  for (uint32_t i = 0; i < slice.count; i++) {
    const uint32_t id = whole_.chunk(rank_, slice, i);
    if (whole_.empty(id)) continue;
    Memory& memory = memory_[whole_.memory(id)];
    if (memory.writer != kNone) order(memory.writer, step);
    for (uint32_t r = memory.first_reader; r != kNone; r = readers_[r].next)
      if (readers_[r].step != step) order(readers_[r].step, step);
    memory = {.writer = step, .written_at = i};
  }
}

// Within a step: a reduction may write where it reads at the same place of its slices; nothing else
// may write what it reads.
void Races::overlap(uint32_t step, Slice from) {
  const uint32_t step_id = whole_.first_step(rank_) + step;
  const bool reduces = whole_.step(step_id).kind == StepKind::reduce;
  for (uint32_t i = 0; i < from.count; i++) {
    const uint32_t id = whole_.chunk(rank_, from, i);
    const Memory& memory = memory_[whole_.memory(id)];
    if (whole_.empty(id) || memory.writer != step) continue;
    if (memory.written_at != i || !reduces)
      fault("{} reads at chunk {} of its slice what it writes at chunk {}", whole_.text(step_id), i,
            memory.written_at);
  }
}

void Races::order(uint32_t earlier, uint32_t later) {
  const uint32_t first = whole_.first_step(rank_);
  if (needed_by_[first + earlier] == later) return;
  if (before_.empty()) close();
  if (before_[later * row_words_ + earlier / 64] >> earlier % 64 & 1) return;
  fault("race: {} and {} touch the same memory and no need orders them",
        whole_.text(first + earlier), whole_.text(first + later));
}

// The transitive closure of the rank's needs.
void Races::close() {
  const Schedule& schedule = whole_.of(rank_);
  row_words_ = (schedule.steps.size() + 63) / 64;
  before_.assign(schedule.steps.size() * row_words_, 0);
  for (size_t i = 0; i < schedule.steps.size(); i++) {
    uint64_t* row = &before_[i * row_words_];
    for (const uint32_t need : schedule.needs_of(schedule.steps[i])) {
      const uint64_t* other = &before_[need * row_words_];
      for (size_t w = 0; w <= need / 64; w++) row[w] |= other[w];
      row[need / 64] |= uint64_t{1} << need % 64;
    }
  }
}

}  // namespace

void check_races(const Whole& whole) {
  Races races(whole);
  for (uint32_t rank = 0; rank < whole.ranks(); rank++) races.check_rank(rank);
}

}  // namespace hcomm::schedule
