// SPDX-License-Identifier: Apache-2.0
// Shared memory between the ranks of a node: the transport and its endpoint, which owns the group,
// the channels, and the doorbell by which peers end its sleep.
#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/process.h"
#include "transport/shm/channel.h"
#include "transport/shm/group.h"

namespace hcomm::transport {

namespace {

int membarrier(int command) {
  return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0));
}

SocketName doorbell_name(std::string_view mailbox) {
  return SocketName(fmt::format("{}-bell", mailbox));
}

class ShmEndpoint final : public Endpoint {
 public:
  explicit ShmEndpoint(const Place& place);

  std::string address() const override { return group_->address(); }
  void connect(std::span<const std::string> addresses, Deadline deadline) override;
  std::optional<Reach> reach(uint32_t peer) const override;
  Channel& channel(uint32_t peer, uint32_t slot) override;
  bool prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) override;
  void after_sleep() override;
  std::string last_error(uint32_t peer) const override;

 private:
  struct Neighbour {
    ShmPeer peer;
    std::unique_ptr<ShmChannel> channels[kMaxSlots];
  };
  void probe_pull(const ShmPeer& peer);
  bool moved();
  void wake_self();

  const Place place_;
  uint64_t probe_[2] = {0, 0};  // what peers read to find out whether they may
  UniqueFd doorbell_;
  SocketName doorbell_name_;
  const bool membarrier_works_;
  bool pull_refused_ = false;
  std::unique_ptr<SharedRing> shared_[kMaxSlots];
  std::vector<Neighbour> neighbours_;     // by member number
  std::vector<ShmChannel*> channels_;     // all that have been made
  std::atomic<AreaHead*> head_{nullptr};  // ours
  std::unique_ptr<ShmGroup> group_;       // last: its service thread calls wake_self
};

ShmEndpoint::ShmEndpoint(const Place& place)
    : place_(place),
      membarrier_works_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0),
      group_(std::make_unique<ShmGroup>(place, [this] { wake_self(); })) {
  doorbell_name_ = doorbell_name(group_->mailbox());
  doorbell_ = bind_socket(doorbell_name_);
}

void ShmEndpoint::connect(std::span<const std::string> addresses, Deadline deadline) {
  group_->join(addresses, deadline);
  const NodeMemory* memory = group_->memory();
  if (memory == nullptr) return;
  AreaHead& head = memory->head(group_->self());
  fill_random(std::as_writable_bytes(std::span(probe_)));
  head.probe_address = reinterpret_cast<uint64_t>(probe_);
  head.probe_value[0] = probe_[0];
  head.probe_value[1] = probe_[1];
  const std::vector<Member>& members = group_->members();
  neighbours_ = std::vector<Neighbour>(members.size());
  for (uint32_t i = 0; i < members.size(); i++) {
    ShmPeer& peer = neighbours_[i].peer;
    peer.member = i;
    peer.pid = members[i].pid;
    peer.head = &memory->head(i);
    peer.doorbell = doorbell_name(members[i].mailbox);
    peer.ring_from = doorbell_.get();
    if (place_.config->pull == Switch::on) peer.pulled_by = &memory->pull(i, group_->self());
  }
  head_.store(&head, std::memory_order_release);
}

std::optional<Reach> ShmEndpoint::reach(uint32_t peer) const {
  const auto member = group_->member_of(peer);
  if (!member || group_->memory() == nullptr || *member == group_->self()) return std::nullopt;
  return Reach{.latency_us = 0.1, .bytes_per_us = 10'000, .map = place_.memory != nullptr};
}

Channel& ShmEndpoint::channel(uint32_t peer, uint32_t slot) {
  const auto member = group_->member_of(peer);
  HCOMM_CHECK(member && *member < neighbours_.size() && slot < kMaxSlots, "peer {} slot {}", peer,
              slot);
  Neighbour& neighbour = neighbours_[*member];
  std::unique_ptr<ShmChannel>& channel = neighbour.channels[slot];
  if (channel == nullptr) {
    probe_pull(neighbour.peer);
    std::unique_ptr<SharedRing>& shared = shared_[slot];
    if (shared == nullptr)
      shared = std::make_unique<SharedRing>(*group_->memory(), group_->self(), slot);
    channel = std::make_unique<ShmChannel>(
        ChannelPlace{group_->memory(), group_->self(), slot, shared.get()}, neighbour.peer,
        group_->maps());
    channels_.push_back(channel.get());
  }
  return *channel;
}

std::string ShmEndpoint::last_error(uint32_t peer) const {
  const auto member = group_->member_of(peer);
  if (!member || *member >= neighbours_.size()) return {};
  for (const auto& channel : neighbours_[*member].channels)
    if (channel != nullptr && !channel->error().empty()) return channel->error();
  return {};
}

// The reader finds out whether it may, and its word counts: so both ends agree by construction.
void ShmEndpoint::probe_pull(const ShmPeer& peer) {
  if (place_.config->pull != Switch::on) return;
  std::atomic<Pull>& verdict = group_->memory()->pull(group_->self(), peer.member);
  if (verdict.load(std::memory_order_relaxed) != Pull::unknown) return;
  const bool possible = can_pull(peer.pid, *peer.head);
  verdict.store(possible ? Pull::possible : Pull::impossible, std::memory_order_release);
  if (possible || pull_refused_) return;
  pull_refused_ = true;
  log(LogLevel::info,
      "process {} may not be read by process_vm_readv: large messages go through shared memory",
      peer.pid);
}

// -- sleeping -----------------------------------------------------------------------------------
//
// asleep = 1; membarrier; look again; sleep. A peer publishes, then loads `asleep`. The barrier
// runs on every processor between our store and our second look: a peer that loaded 0 before it has
// published before it, and we see that; a peer that loads after it sees 1.

bool ShmEndpoint::prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) {
  AreaHead* head = head_.load(std::memory_order_relaxed);
  if (head == nullptr) return true;
  head->asleep.store(1, std::memory_order_seq_cst);
  const bool visible = membarrier_works_ && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
  if (moved()) {
    after_sleep();
    return false;
  }
  if (!visible) cap_ms = std::min(cap_ms, 1);
  if (group_->maps().waiting()) cap_ms = std::min(cap_ms, 100);
  descriptors.push_back({.fd = doorbell_.get(), .events = POLLIN, .revents = 0});
  return true;
}

bool ShmEndpoint::moved() {
  bool any = group_->maps().take_arrivals();
  for (ShmChannel* each : channels_) any = each->moved() || any;
  return any;
}

void ShmEndpoint::after_sleep() {
  AreaHead* head = head_.load(std::memory_order_relaxed);
  if (head == nullptr) return;
  if (head->asleep.exchange(0, std::memory_order_acq_rel) != 0) return;
  char bytes[16];  // somebody cleared it: a byte has come, or is on its way and will be read next
                   // time
  while (::recv(doorbell_.get(), bytes, sizeof bytes, MSG_DONTWAIT) >= 0 || errno == EINTR) {
  }
}

// Service thread: an allocation of a peer has been mapped.
void ShmEndpoint::wake_self() {
  AreaHead* head = head_.load(std::memory_order_acquire);
  if (head == nullptr) return;
  ShmPeer self;
  self.head = head;
  self.doorbell = doorbell_name_;
  self.ring_from = doorbell_.get();
  self.wake_if_asleep();
}

class ShmTransport final : public Transport {
 public:
  std::string_view name() const override { return "shm"; }
  std::string probe(const Config&) const override {
    try {
      make_shared_pages("shared memory", 1, Switch::off);
      return "";
    } catch (const Error& error) {
      return error.text();
    }
  }
  std::unique_ptr<Endpoint> open(const Place& place) const override {
    return std::make_unique<ShmEndpoint>(place);
  }
};

}  // namespace

const Transport& shm_transport();
const Transport& shm_transport() {
  static const ShmTransport transport;
  return transport;
}

}  // namespace hcomm::transport
