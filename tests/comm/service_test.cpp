// SPDX-License-Identifier: Apache-2.0
#include "comm/control/service.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/clock.h"

namespace hcomm::comm {
namespace {

UniqueFd make_event() {
  return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}
void raise_event(int fd) {
  const uint64_t one = 1;
  ASSERT_EQ(write(fd, &one, sizeof one), 8);
}
void clear_event(int fd) {
  uint64_t value = 0;
  const ssize_t bytes = read(fd, &value, sizeof value);
  (void)bytes;
}
template <typename Condition>
bool eventually(Condition condition) {
  const Deadline deadline = Deadline::after_ms(10'000);
  while (!condition() && !deadline.passed()) std::this_thread::yield();
  return condition();
}

TEST(Service, CallsWhatIsReadableUntilUnwatched) {
  Service service;
  const UniqueFd event = make_event();
  std::atomic<int> calls = 0;
  service.watch(event.get(), [&] {
    EXPECT_TRUE(service.here());
    clear_event(event.get());
    calls++;
  });
  for (int i = 1; i <= 100; i++) {
    raise_event(event.get());
    ASSERT_TRUE(eventually([&] { return calls >= i; }));
  }
  service.unwatch(event.get());
  raise_event(event.get());
  service.run([] {});
  EXPECT_EQ(calls, 100);
  EXPECT_FALSE(service.here());
}

TEST(Service, UnwatchFromTheTaskItself) {
  Service service;
  const UniqueFd event = make_event();
  std::atomic<int> calls = 0;
  service.watch(event.get(), [&, big = std::string(1000, 'x')] {
    service.unwatch(event.get());
    EXPECT_EQ(big, std::string(1000, 'x'));  // the task outlives its own unwatch
    calls++;
  });
  raise_event(event.get());
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  service.run([] {});
  EXPECT_EQ(calls, 1);
  // It may be watched again, from a task too.
  service.run([&] {
    service.watch(event.get(), [&] {
      clear_event(event.get());
      calls++;
    });
  });
  ASSERT_TRUE(eventually([&] { return calls == 2; }));
  service.unwatch(event.get());
}

// What the task uses is destroyed as soon as unwatch has returned: a sanitizer sees a late call.
TEST(Service, UnwatchWaitsForTheTask) {
  Service service;
  std::mt19937 random(17);
  for (int i = 0; i < 2000; i++) {
    const UniqueFd event = make_event();
    auto value = std::make_unique<int>(0);
    service.watch(event.get(), [&service, &event, p = value.get(), own = random() % 4 == 0] {
      if (own) service.unwatch(event.get());
      ++*p;
    });
    raise_event(event.get());
    if (random() % 2 == 0) std::this_thread::yield();
    service.unwatch(event.get());
  }
}

TEST(Service, TimersRunInOrderAndCanBeCancelled) {
  Service service;
  std::vector<int> order;
  std::atomic<bool> done = false;
  service.run_after(30, [&] {
    order.push_back(3);
    done = true;
  });
  service.run_after(10, [&] { order.push_back(2); });
  service.run_after(0, [&] { order.push_back(1); });
  const Service::Timer never = service.run_after(5, [&] { order.push_back(9); });
  service.cancel(never);
  service.cancel(never);
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Service, CancelWaitsForTheTask) {
  Service service;
  for (int i = 0; i < 2000; i++) {
    auto value = std::make_unique<int>(0);
    const Service::Timer timer = service.run_after(0, [p = value.get()] { ++*p; });
    if (i % 3 == 0) std::this_thread::yield();
    service.cancel(timer);
  }
}

TEST(Service, WritableOnlyWhileWanted) {
  Service service;
  const UniqueFd event = make_event();  // always writable, not readable
  std::atomic<int> calls = 0;
  service.watch(event.get(), [&] {
    calls++;
    service.want(event.get(), Service::Want::read);
  });
  service.run([] {});
  EXPECT_EQ(calls, 0);
  service.want(event.get(), Service::Want::read_write);
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  service.run([] {});
  EXPECT_EQ(calls, 1);
  service.want(event.get(), Service::Want::nothing);
  raise_event(event.get());
  service.run([] {});
  EXPECT_EQ(calls, 1);
  service.unwatch(event.get());
}

TEST(Service, ThreadHasANameAndNoSignals) {
  Service service;
  std::string name;
  sigset_t blocked;
  service.run([&] {
    char text[16] = "";
    pthread_getname_np(pthread_self(), text, sizeof text);
    name = text;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  });
  EXPECT_EQ(name, "hcomm-service");
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGUSR1, SIGWINCH})
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  sigset_t ours;
  pthread_sigmask(SIG_BLOCK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGINT), 0);
}

TEST(Service, ATaskThatThrowsIsDroppedAndTheOthersGoOn) {
  Service service;
  const UniqueFd bad = make_event(), good = make_event();
  std::atomic<int> bad_calls = 0, good_calls = 0;
  service.watch(bad.get(), [&] {
    bad_calls++;
    throw std::runtime_error("expected by the test");
  });
  service.watch(good.get(), [&] {
    clear_event(good.get());
    good_calls++;
  });
  raise_event(bad.get());
  raise_event(good.get());
  ASSERT_TRUE(eventually([&] { return bad_calls == 1 && good_calls == 1; }));
  service.run([] {});
  EXPECT_EQ(bad_calls, 1);
  service.unwatch(good.get());
  service.unwatch(bad.get());
}

#if !defined(__SANITIZE_THREAD__)  // it does not know forks of processes with threads
TEST(Service, AForkedChildLeavesTheParentAlone) {
  auto service = std::make_unique<Service>();
  const UniqueFd event = make_event();
  std::atomic<int> calls = 0;
  service->watch(event.get(), [&] {
    clear_event(event.get());
    calls++;
  });
  service->run([] {});
  const pid_t child = fork();
  if (child == 0) {
    const bool inherited = service->inherited();
    service->unwatch(event.get());  // must not reach the epoll instance that we share
    service->run([] { _exit(3); });
    service.reset();
    _exit(inherited ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  raise_event(event.get());
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  service->unwatch(event.get());
}
#endif

}  // namespace
}  // namespace hcomm::comm
