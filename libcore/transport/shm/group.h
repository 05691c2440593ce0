// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator that share memory: who they are, and how each gets hold of it.
// Members are the ranks of equal host key, in rank order. The first makes NodeMemory; the others
// ask it for the descriptor (a rank that has an earlier member in its own process asks that one for
// its mapping, so that a process maps once). Who cannot be asked, or hands over memory without our
// token, is no neighbour, whatever its host is called. Also answers peers that ask for allocations
// of ours. Owned by the endpoint. Absent: channels.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/shm/mail.h"
#include "transport/shm/node_memory.h"
#include "transport/shm/remote.h"
#include "transport/transport.h"

namespace hcomm::transport {

struct Member {
  uint32_t rank = 0;
  std::string mailbox;
  int pid = 0;
};

class ShmGroup {
 public:
  // `arrived` is called in the service thread when an allocation has arrived in maps(). Throws
  // Error(system).
  ShmGroup(const Place& place, std::function<void()> arrived);
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;
  ~ShmGroup();

  std::string address() const;
  const std::string& mailbox() const { return mailbox_.name(); }
  // Finds the group and its memory; without success memory() is null and the log says why. Throws
  // Error(system) where huge pages are demanded and cannot be had.
  void join(std::span<const std::string> addresses, Deadline deadline);

  const std::vector<Member>& members() const { return members_; }
  uint32_t self() const { return self_; }  // our own member number
  std::optional<uint32_t> member_of(uint32_t rank) const;
  const NodeMemory* memory() const { return memory_.get(); }
  PeerMaps& maps() { return maps_; }

 private:
  struct Asker {
    SocketName mailbox;
    bool same_process;
  };

  void find_members(std::span<const std::string> addresses);
  uint32_t owner() const;
  void make_memory();
  void ask(const Member& owner, Deadline deadline);
  void settle(std::shared_ptr<NodeMemory> memory);
  // Service thread.
  void on_mail(Mail mail);
  void on_ask_segment(const Mail& mail);
  void on_segment(Mail mail);
  void on_ask_memory(const Mail& mail);
  void hand_over(const Asker& to);
  int ask_allocation(uint32_t member, uint64_t id);

  const Place place_;
  const std::function<void()> arrived_;
  std::vector<Member> members_;
  std::vector<std::optional<uint32_t>> member_of_rank_;
  uint32_t self_ = 0;
  PeerMaps maps_;

  std::mutex mutex_;
  std::condition_variable answered_;
  enum class Phase { before, settled, over } phase_ = Phase::before;
  bool answer_came_ = false;
  std::string refusal_;                 // why the answer is of no use
  std::shared_ptr<NodeMemory> memory_;  // shared by the ranks of one process
  std::vector<Asker> askers_;           // that came before we had it ourselves

  Mailbox mailbox_;  // last: its handler uses what stands above
};

}  // namespace hcomm::transport
