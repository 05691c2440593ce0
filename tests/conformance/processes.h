// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator as real processes, forked by a test, which must have no other threads
// then. They meet over a page of shared memory. Bodies report by GoogleTest expectations: any
// failure in a rank fails the test. Absent: launchers, rendezvous.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "conformance/fleet.h"

namespace hcomm::test {

class Processes {
 public:
  using Body = std::function<void(Rank&, Processes&)>;

  Processes(const Transport& transport, uint32_t ranks, const Config& config, const Body& body)
      : ranks_(ranks) {
    void* page =
        ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table_ = new (page) Table;
    const uint64_t nonce = std::random_device{}();
    for (uint32_t rank = 0; rank < ranks; rank++) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(live(transport, rank, config, nonce, body));
      children_.push_back(child);
    }
  }
  Processes(const Processes&) = delete;
  ~Processes() {
    kill_all();
    ::munmap(table_, sizeof(Table));
  }

  // In a rank: waits until all ranks have come here.
  void meet() {
    const uint32_t turn = ++turns_;
    table_->arrived.fetch_add(1, std::memory_order_acq_rel);
    const Deadline deadline = soon();
    while (table_->arrived.load(std::memory_order_acquire) < turn * ranks_) {
      if (deadline.passed()) ::_exit(3);
      ::sched_yield();
    }
  }

  // In the test: true when all ranks have ended well.
  bool succeeded() {
    bool well = true;
    for (pid_t& child : children_) {
      int status = 0;
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
      child = -1;
    }
    return well;
  }
  void await_meetings(uint32_t turn) {
    const Deadline deadline = soon();
    while (table_->arrived.load(std::memory_order_acquire) < turn * ranks_ && !deadline.passed())
      ::sched_yield();
  }
  void kill_all() {
    for (pid_t& child : children_) {
      if (child < 0) continue;
      ::kill(child, SIGKILL);
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
      child = -1;
    }
  }
  pid_t child(uint32_t rank) const { return children_[rank]; }
  std::string address(uint32_t rank) const {
    return {table_->addresses[rank], table_->address_bytes[rank]};
  }

 private:
  struct Table {
    std::atomic<uint32_t> arrived{0};
    size_t address_bytes[64] = {};
    char addresses[64][4096] = {};
  };

  int live(const Transport& transport, uint32_t rank, const Config& config, uint64_t nonce,
           const Body& body) {
    children_.clear();
    {
      PollReactor reactor;
      Rank self(transport, rank, ranks_, config, reactor, nonce);
      const std::string mine = self.endpoint().address();
      if (mine.size() > sizeof table_->addresses[rank]) return 2;
      std::memcpy(table_->addresses[rank], mine.data(), mine.size());
      table_->address_bytes[rank] = mine.size();
      meet();
      std::vector<std::string> addresses;
      for (uint32_t i = 0; i < ranks_; i++) addresses.push_back(address(i));
      self.endpoint().connect(addresses, soon());
      meet();
      body(self, *this);
      meet();
    }
    return testing::Test::HasFailure() ? 1 : 0;
  }

  uint32_t ranks_, turns_ = 0;
  Table* table_ = nullptr;
  std::vector<pid_t> children_;
};

}  // namespace hcomm::test
