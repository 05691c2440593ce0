// SPDX-License-Identifier: Apache-2.0
// Streams, events and groups of the C API: what is queued, what fails there, what is dropped.
#include "api/expect.h"

namespace hcomm::test {
namespace {

TEST(Queues, ASimulatedGroupRunsNothing) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int first = -1, second = -1;
    hcommComm_t child = nullptr;
    hcommGroupStart();
    self.ok(sum_one(self, &first), "in the group");
    self.ok(hcommCommSplit(self.comm, 0, 0, &child, nullptr), "split in the group");
    self.ok(hcommGroupSimulateEnd(), "simulate");
    hcommGroupStart();
    hcommGroupStart();
    self.ok(sum_one(self, &second), "in the inner group");
    self.ok(hcommGroupEnd(), "inner end");
    self.ok(hcommGroupSimulateEnd(), "simulate the outer");
    expect(self, first == -1 && second == -1 && child == nullptr, "that nothing ran");
    hcommGroupStart();
    self.ok(hcommGroupEnd(), "an empty group");
    expect(self, first == -1 && second == -1 && child == nullptr, "that nothing runs later");
    self.ok(sum_one(self, &first), "afterwards");
    expect(self, first == 2, "the right sum");
  });
  EXPECT_EQ(wrong, "");
}

TEST(Queues, ASimulatedGroupTellsWhatCouldNotRun) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    int out = -1;
    hcommGroupStart();
    self.ok(sum_one(self, &out), "a good call");
    expect(self, hcommBroadcast(&out, &out, 1, hcommInt32, 9, self.comm, nullptr),
           hcommInvalidArgument, "a bad root");
    expect(self, hcommGroupSimulateEnd(), hcommInvalidArgument, "simulate");
    hcommGroupStart();
    self.ok(sum_one(self, &out), "the error is forgotten");
    self.ok(hcommGroupEnd(), "end");
    expect(self, out == 2, "the right sum");
  });
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(hcommGroupSimulateEnd(), hcommInvalidUsage);
  EXPECT_EQ(hcommGroupEnd(), hcommInvalidUsage);
}

TEST(Queues, TheCpuHasNoStreamToWrap) {
  hcommStream_t stream = nullptr;
  int native = 0;
  EXPECT_EQ(hcommStreamWrap(&stream, "cpu", &native), hcommUnsupported);
  EXPECT_EQ(hcommStreamWrap(&stream, nullptr, &native), hcommUnsupported);
  EXPECT_EQ(hcommStreamWrap(&stream, "cuda:0", &native), hcommUnsupported);
  EXPECT_EQ(hcommStreamWrap(nullptr, "cpu", &native), hcommInvalidArgument);
  EXPECT_EQ(hcommStreamCreate(&stream, "cuda:0"), hcommUnsupported);
  EXPECT_EQ(hcommStreamCreate(nullptr, "cpu"), hcommInvalidArgument);
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(hcommStreamDestroy(nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommEventCreate(nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommEventQuery(nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommEventDestroy(nullptr), hcommInvalidArgument);
  EXPECT_EQ(hcommStreamSynchronize(nullptr), hcommSuccess);
  EXPECT_EQ(hcommStreamQuery(nullptr), hcommSuccess);
}

// The NULL stream is the calling thread: an event of it is done at once, and it waits itself.
TEST(Queues, EventsOfTheNullStream) {
  const std::string wrong = run_world(2, {}, [](const Rank& self) {
    hcommEvent_t event;
    hcommStream_t stream;
    self.ok(hcommEventCreate(&event), "event");
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
    self.ok(hcommEventQuery(event), "an event that was never recorded");
    self.ok(hcommEventRecord(event, nullptr), "record");
    self.ok(hcommEventQuery(event), "an event of the NULL stream");
    self.ok(hcommStreamWaitEvent(stream, event), "a stream that waits for it");
    int out = 0;
    self.ok(sum_one(self, &out, stream), "a sum");
    self.ok(hcommEventRecord(event, stream), "record on the stream");
    self.ok(hcommStreamWaitEvent(nullptr, event), "the thread waits for the stream");
    expect(self, out == 2, "the sum when the wait is over");
    expect(self, hcommEventRecord(nullptr, stream), hcommInvalidArgument, "no event to record");
    expect(self, hcommStreamWaitEvent(stream, nullptr), hcommInvalidArgument, "no event to await");
    self.ok(hcommEventDestroy(event), "event");
    self.ok(hcommStreamDestroy(stream), "stream");
  });
  EXPECT_EQ(wrong, "");
}

// Exchanges around a ring, each in a group on a stream, two streams by turns.
TEST(Queues, GroupedSendsAndReceivesOnStreams) {
  for (const char* transport : {"shm", "tcp"}) {
    const std::string wrong = run_world(3, {.transports = transport}, [](const Rank& self) {
      hcommStream_t streams[2];
      for (hcommStream_t& stream : streams) self.ok(hcommStreamCreate(&stream, nullptr), "stream");
      const int next = (self.rank + 1) % 3, last = (self.rank + 2) % 3;
      constexpr size_t kCount = 20000;
      std::vector<int> out[8], in[8];
      for (int round = 0; round < 8; round++) {
        out[round].assign(kCount, self.rank * 10 + round);
        in[round].assign(kCount, -1);
        hcommGroupStart();
        hcommSend(out[round].data(), kCount, hcommInt32, next, self.comm, streams[round % 2]);
        hcommRecv(in[round].data(), kCount, hcommInt32, last, self.comm, streams[round % 2]);
        self.ok(hcommGroupEnd(), "group");
      }
      for (hcommStream_t stream : streams) self.ok(hcommStreamSynchronize(stream), "synchronize");
      for (int round = 0; round < 8; round++)
        for (const int value : in[round])
          if (value != last * 10 + round) return self.findings->add("wrong data");
      for (hcommStream_t stream : streams) self.ok(hcommStreamDestroy(stream), "stream");
    });
    EXPECT_EQ(wrong, "") << transport;
  }
}

TEST(Queues, AnOperationThatTimesOutOnAStreamIsToldOnce) {
  const std::string wrong = run_world(2, {.timeout_ms = 500}, [](const Rank& self) {
    if (self.rank == 1) {  // never calls
      expect(self, wait_for_state(self), hcommTimeout, "what rank 1 learns");
      return;
    }
    hcommStream_t stream;
    self.ok(hcommStreamCreate(&stream, nullptr), "stream");
    int out = 0;
    self.ok(sum_one(self, &out, stream), "is queued");
    self.ok(sum_one(self, &out, stream), "is queued behind it");
    expect(self, hcommStreamSynchronize(stream), hcommTimeout, "synchronize");
    expect(self, says(hcommGetLastError(self.comm), "rank 1"), "a text that names rank 1");
    self.ok(hcommStreamSynchronize(stream), "synchronize again");
    self.ok(hcommStreamQuery(stream), "idle");
    self.ok(sum_one(self, &out, stream), "is queued on a broken communicator");
    expect(self, hcommStreamSynchronize(stream), hcommTimeout, "the error stays");
    self.ok(hcommStreamDestroy(stream), "stream");
  });
  EXPECT_TRUE(wrong.empty() || says(wrong.c_str(), ": destroy: timeout")) << wrong;
}

}  // namespace
}  // namespace hcomm::test
