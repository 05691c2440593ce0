// SPDX-License-Identifier: Apache-2.0
// An operation that is repeated takes no memory from the heap: operator new is counted for all of
// the process, whose threads are the ranks.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>

#include "api/expect.h"

namespace {
std::atomic<bool> g_counting{false};
std::atomic<uint64_t> g_allocations{0};

void* allocate(size_t bytes, size_t alignment) {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1);
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(bytes, 1)) != 0)
    throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace hcomm::test {
namespace {

// What `repeat` allocates on all ranks, after a few rounds of it.
uint64_t count_once(const char* transport, int ranks, int rounds,
                     const std::function<void(const Rank&)>& repeat) {
  std::barrier meeting(ranks);
  const std::string wrong =
      run_world(ranks, {.transports = transport}, [&](const Rank& self) {
        for (int i = 0; i < 40; i++) repeat(self);  // more than the lines and rings of a channel
        meeting.arrive_and_wait();
        if (self.rank == 0) {
          g_allocations = 0;
          g_counting = true;
        }
        meeting.arrive_and_wait();
        for (int i = 0; i < rounds; i++) repeat(self);
        meeting.arrive_and_wait();
        if (self.rank == 0) g_counting = false;
        meeting.arrive_and_wait();
      });
  EXPECT_EQ(wrong, "");
  return g_allocations;
}

// The least of a few tries: a thread's first sleep, and a wait of 250 ms, which is told to the hub,
// take memory, and on a busy machine they happen.
uint64_t allocations(const char* transport, int ranks, int rounds,
                     const std::function<void(const Rank&)>& repeat) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 5 && least > 0; i++)
    least = std::min(least, count_once(transport, ranks, rounds, repeat));
  return least;
}

class Allocations : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Allocations, testing::Values("shm", "tcp"),
                         [](const auto& place) { return std::string(place.param); });

TEST_P(Allocations, ARepeatedAllReduceTakesNone) {
  for (const size_t count : {size_t{1}, size_t{256}, size_t{16'384}, size_t{300'000}}) {
    std::vector<std::vector<float>> in(3, std::vector<float>(count, 1)), out = in;
    EXPECT_EQ(allocations(GetParam(), 3, count > 100'000 ? 20 : 300,
                          [&](const Rank& self) {
                            const auto mine = static_cast<size_t>(self.rank);
                            hcommAllReduce(in[mine].data(), out[mine].data(), count, hcommFloat32,
                                           hcommSum, self.comm, nullptr);
                          }),
              0u)
        << count << " elements";
  }
}

// By turns, so that each is looked up.
TEST_P(Allocations, CallsByTurnsTakeNone) {
  std::vector<std::vector<float>> in(2, std::vector<float>(4000, 1)), out = in;
  EXPECT_EQ(allocations(GetParam(), 2, 200,
                        [&](const Rank& self) {
                          const auto mine = static_cast<size_t>(self.rank);
                          float *from = in[mine].data(), *to = out[mine].data();
                          hcommAllReduce(from, to, 4000, hcommFloat32, hcommSum, self.comm,
                                         nullptr);
                          hcommBroadcast(from, to, 100, hcommFloat32, 1, self.comm, nullptr);
                          hcommAllGather(from, to, 2000, hcommFloat32, self.comm, nullptr);
                          hcommBarrier(self.comm, nullptr);
                        }),
            0u);
}

struct Plan {
  hcommPlan_t handle = nullptr;
  ~Plan() { hcommPlanDestroy(handle); }
};

TEST_P(Allocations, APlanTakesNone) {
  std::vector<std::vector<float>> data(2, std::vector<float>(8000, 1));
  EXPECT_EQ(allocations(GetParam(), 2, 200,
                        [&](const Rank& self) {
                          thread_local Plan plan;
                          float* mine = data[static_cast<size_t>(self.rank)].data();
                          if (plan.handle == nullptr) {
                            hcommGroupStart();
                            for (size_t at = 0; at < 4000; at += 1000)
                              hcommAllReduce(mine + at, mine + at, 10, hcommFloat32, hcommMax,
                                             self.comm, nullptr);
                            hcommAllReduce(mine + 4000, mine + 4000, 4000, hcommFloat32, hcommMax,
                                           self.comm, nullptr);
                            self.ok(hcommPlanCreate(&plan.handle), "create");
                          }
                          self.ok(hcommPlanStart(plan.handle), "start");
                          self.ok(hcommPlanWait(plan.handle), "wait");
                        }),
            0u);
}

}  // namespace
}  // namespace hcomm::test
