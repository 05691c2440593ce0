// SPDX-License-Identifier: Apache-2.0
// The recorder and its reader: one process, and two over the same memory.
#include "trace/recorder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/fd.h"
#include "trace/reader.h"

namespace hcomm::trace {
namespace {

OpRecord& begin(Recorder& recorder, uint64_t& serial) {
  OpRecord& record = recorder.begin(serial);
  const auto low = static_cast<uint32_t>(serial);
  record.sequence = record.count = serial;
  record.communicator = record.plan = record.root = low;
  record.collective = record.type = record.op = static_cast<uint8_t>(serial);
  return record;
}

void record_one(Recorder& recorder) {
  uint64_t serial = 0;
  OpRecord& record = begin(recorder, serial);
  recorder.publish(record, serial);
  Recorder::end(record, OpState::done);
}

// Every field is of the operation that the serial names.
bool whole(const OpSnapshot& op) {
  const auto low = static_cast<uint32_t>(op.serial);
  const auto byte = static_cast<uint8_t>(op.serial);
  return op.sequence == op.serial && op.count == op.serial && op.communicator == low &&
         op.plan == low && op.root == low && op.collective == byte && op.type == byte &&
         op.op == byte;
}

UniqueFd recorder_memory(uint32_t ranks) {
  UniqueFd fd(memfd_create("recorder-test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(kAreaBytes * ranks)), 0);
  return fd;
}

TEST(Recorder, ARankThatNeverStartedIsNothing) {
  alignas(64) static std::byte memory[kAreaBytes];
  EXPECT_FALSE(read_rank(memory, 10));
}

TEST(Recorder, TheNewestOperationsFirst) {
  Recorder recorder(-1, 3, 4);
  for (int i = 0; i < 5; i++) record_one(recorder);
  uint64_t serial = 0;
  OpRecord& running = begin(recorder, serial);
  recorder.publish(running, serial);
  const auto rank = read_rank(&recorder.area(), 3);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, 3u);
  EXPECT_EQ(rank->pid, getpid());
  ASSERT_EQ(rank->last.size(), 3u);
  EXPECT_EQ(rank->last[0].serial, 6u);
  EXPECT_EQ(rank->last[0].state, OpState::running);
  EXPECT_EQ(rank->last[0].end_us, 0);
  EXPECT_EQ(rank->last[2].serial, 4u);
  EXPECT_EQ(rank->last[2].state, OpState::done);
  EXPECT_GE(rank->last[2].end_us, rank->last[2].begin_us);
}

TEST(Recorder, TheRingKeepsItsNewest) {
  Recorder recorder(-1, 0, 1);
  for (uint32_t i = 0; i < 3 * kRingRecords + 7; i++) record_one(recorder);
  const auto rank = read_rank(&recorder.area(), 10 * kRingRecords);
  ASSERT_TRUE(rank);
  ASSERT_EQ(rank->last.size(), kRingRecords);
  uint64_t serial = 3 * kRingRecords + 7;
  for (const OpSnapshot& op : rank->last) {
    EXPECT_EQ(op.serial, serial--);
    EXPECT_TRUE(whole(op)) << op.serial;
  }
}

TEST(Recorder, ARecordThatIsBeingFilledIsNotRead) {
  Recorder recorder(-1, 0, 1);
  for (uint32_t i = 0; i < kRingRecords; i++) record_one(recorder);
  uint64_t serial = 0;
  OpRecord& record = begin(recorder, serial);  // over the oldest one, not published
  EXPECT_EQ(read_rank(&recorder.area(), kRingRecords)->last.size(), kRingRecords - 1);
  recorder.publish(record, serial);
  EXPECT_EQ(read_rank(&recorder.area(), kRingRecords)->last.size(), kRingRecords);
}

// A reader of another process, while the ring goes round as fast as it can.
TEST(Recorder, AReaderNeverSeesAMixOfTwo) {
  const UniqueFd fd = recorder_memory(1);
  const pid_t writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    Recorder recorder(fd.get(), 0, 1);
    while (true) record_one(recorder);
  }
  void* memory = mmap(nullptr, kAreaBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  uint64_t seen = 0, mixed = 0;
  for (int looks = 0; looks < 2000 || seen < 2000;) {
    const auto rank = read_rank(memory, kRingRecords);
    if (!rank || rank->last.empty()) continue;
    looks++;
    seen += rank->last.size();
    for (const OpSnapshot& op : rank->last) mixed += whole(op) ? 0 : 1;
  }
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  munmap(memory, kAreaBytes);
  EXPECT_EQ(mixed, 0u) << "of " << seen;
}

TEST(Recorder, MemoryOfTooFewRanksIsRefused) {
  const UniqueFd fd = recorder_memory(2);
  EXPECT_NO_THROW(Recorder(fd.get(), 1, 4));
  EXPECT_THROW(Recorder(fd.get(), 2, 4), Error);
}

}  // namespace
}  // namespace hcomm::trace
