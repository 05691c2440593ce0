// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/group.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>

#include "base/log.h"

namespace hcomm::transport {

namespace {

// A pointer to this, on the heap, is the letter to a rank of the same process.
using HandedOver = std::shared_ptr<NodeMemory>;

// How often a question is repeated: the owner may be too busy to take letters, or have died.
constexpr int64_t kAskEveryMs = 100;

// "MAILBOX PID HOST_KEY"
std::optional<Member> parse_address(std::string_view text, std::string_view host_key) {
  const size_t first = text.find(' ');
  const size_t second = first == text.npos ? text.npos : text.find(' ', first + 1);
  if (second == text.npos || text.substr(second + 1) != host_key) return std::nullopt;
  Member member;
  member.mailbox = text.substr(0, first);
  std::from_chars(text.data() + first + 1, text.data() + second, member.pid);
  return member;
}

}  // namespace

ShmGroup::ShmGroup(const Place& place, std::function<void()> arrived)
    : place_(place),
      arrived_(std::move(arrived)),
      maps_([this](uint32_t member, uint64_t id) { return ask_allocation(member, id); }),
      mailbox_(place_.token, *place_.reactor, [this](Mail mail) { on_mail(std::move(mail)); }) {}

ShmGroup::~ShmGroup() {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::over;
}

std::string ShmGroup::address() const {
  return fmt::format("{} {} {}", mailbox_.name(), ::getpid(), place_.host_key);
}

std::optional<uint32_t> ShmGroup::member_of(uint32_t rank) const {
  return rank < member_of_rank_.size() ? member_of_rank_[rank] : std::nullopt;
}

// -- joining ------------------------------------------------------------------------------------

void ShmGroup::join(std::span<const std::string> addresses, Deadline deadline) {
  find_members(addresses);
  if (members_.size() < 2) return settle(nullptr);
  if (owner() == self_)
    make_memory();
  else
    ask(members_[owner()], deadline);
}

void ShmGroup::find_members(std::span<const std::string> addresses) {
  std::vector<Member> members;
  std::vector<std::optional<uint32_t>> member_of_rank(addresses.size());
  for (uint32_t rank = 0; rank < addresses.size(); rank++) {
    std::optional<Member> member = parse_address(addresses[rank], place_.host_key);
    if (!member) continue;
    member->rank = rank;
    member_of_rank[rank] = static_cast<uint32_t>(members.size());
    if (rank == place_.rank) self_ = static_cast<uint32_t>(members.size());
    members.push_back(std::move(*member));
  }
  const std::lock_guard lock(mutex_);  // the service thread reads them too
  members_ = std::move(members);
  member_of_rank_ = std::move(member_of_rank);
}

uint32_t ShmGroup::owner() const {
  for (uint32_t i = 0; i < self_; i++)
    if (members_[i].pid == members_[self_].pid) return i;
  return 0;
}

void ShmGroup::make_memory() {
  const auto members = static_cast<uint32_t>(members_.size());
  try {
    const Layout layout = Layout::make(members, *place_.config);
    settle(NodeMemory::make(layout, place_.token, place_.config->huge_pages));
  } catch (const Error& error) {
    settle(nullptr);
    if (place_.config->huge_pages == Switch::on) throw;
    log(LogLevel::warn, "shared memory is not used: {}", error.text());
  }
}

void ShmGroup::ask(const Member& owner, Deadline deadline) {
  const SocketName to(owner.mailbox);
  std::unique_lock lock(mutex_);
  while (!answer_came_ && !deadline.passed()) {
    lock.unlock();
    const int error = mailbox_.send(to, {.topic = Topic::ask_segment, .from = place_.rank}, -1);
    lock.lock();
    if (error != 0 && error != EAGAIN) {
      refusal_ = std::generic_category().message(error);
      break;
    }
    const int64_t wait_ms = std::min(error == EAGAIN ? 1 : kAskEveryMs, deadline.left_ms());
    answered_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return answer_came_; });
  }
  std::shared_ptr<NodeMemory> memory = std::move(memory_);
  const std::string why = !refusal_.empty() ? refusal_ : "no answer in time";
  lock.unlock();
  if (memory == nullptr)
    log(LogLevel::info, "shared memory is not used: rank {} (process {}) does not share it: {}",
        owner.rank, owner.pid, why);
  settle(std::move(memory));
}

void ShmGroup::settle(std::shared_ptr<NodeMemory> memory) {
  std::vector<Asker> askers;
  {
    const std::lock_guard lock(mutex_);
    memory_ = std::move(memory);
    phase_ = Phase::settled;
    askers.swap(askers_);
  }
  for (const Asker& each : askers) hand_over(each);
}

// -- the service thread -------------------------------------------------------------------------

void ShmGroup::on_mail(Mail mail) {
  switch (mail.letter.topic) {
    case Topic::ask_segment:
      return on_ask_segment(mail);
    case Topic::segment:
      return on_segment(std::move(mail));
    case Topic::ask_memory:
      return on_ask_memory(mail);
    case Topic::memory: {
      std::optional<uint32_t> member;
      {
        const std::lock_guard lock(mutex_);
        member = member_of(mail.letter.from);
      }
      if (!member) return;
      maps_.deliver(*member, std::move(mail));
      arrived_();
    }
  }
}

void ShmGroup::on_ask_segment(const Mail& mail) {
  const Asker asker{mail.sender, mail.same_process};
  if (!mail.same_user) {
    mailbox_.send(mail.sender, {.topic = Topic::segment, .from = place_.rank}, -1);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::before) {
      const auto same = [&](const Asker& a) { return a.mailbox.text() == asker.mailbox.text(); };
      const bool known = std::any_of(askers_.begin(), askers_.end(), same);
      if (!known && askers_.size() < place_.ranks) askers_.push_back(asker);
      return;
    }
  }
  hand_over(asker);
}

// An answer that cannot be sent (a full mailbox) is asked for again.
void ShmGroup::hand_over(const Asker& to) {
  Letter letter{.topic = Topic::segment, .from = place_.rank};
  std::shared_ptr<NodeMemory> memory;
  {
    const std::lock_guard lock(mutex_);
    memory = memory_;
  }
  if (memory == nullptr || !to.same_process) {
    mailbox_.send(to.mailbox, letter, memory == nullptr ? -1 : memory->fd());
    return;
  }
  auto handed = std::make_unique<HandedOver>(std::move(memory));
  letter.pointer = reinterpret_cast<uint64_t>(handed.get());
  if (mailbox_.send(to.mailbox, letter, -1) == 0) handed.release();  // the reader's now
}

void ShmGroup::on_segment(Mail mail) {
  std::unique_ptr<HandedOver> handed;
  if (mail.same_process && mail.letter.pointer != 0)
    handed.reset(reinterpret_cast<HandedOver*>(mail.letter.pointer));
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::before || answer_came_) return;
  try {
    if (handed)
      memory_ = std::move(*handed);
    else if (mail.fd)
      memory_ = NodeMemory::join(std::move(mail.fd), static_cast<uint32_t>(members_.size()),
                                 place_.token);
    else
      refusal_ = mail.same_user ? "it has none itself" : "it belongs to another user";
  } catch (const Error& error) {
    refusal_ = error.text();
  }
  answer_came_ = true;
  answered_.notify_all();
}

void ShmGroup::on_ask_memory(const Mail& mail) {
  Letter letter{.topic = Topic::memory, .from = place_.rank, .id = mail.letter.id};
  UniqueFd fd;
  if (place_.memory != nullptr && mail.same_user) {
    fd.reset(place_.memory->descriptor(mail.letter.id));
    if (fd && mail.same_process) {
      void* base = place_.memory->address(mail.letter.id);
      letter.pointer = reinterpret_cast<uint64_t>(base);
      if (const auto exported = place_.memory->find(base, 0)) letter.bytes = exported->bytes;
    }
  }
  mailbox_.send(mail.sender, letter, letter.pointer == 0 ? fd.get() : -1);
}

int ShmGroup::ask_allocation(uint32_t member, uint64_t id) {
  return mailbox_.send(SocketName(members_[member].mailbox),
                       {.topic = Topic::ask_memory, .from = place_.rank, .id = id}, -1);
}

}  // namespace hcomm::transport
