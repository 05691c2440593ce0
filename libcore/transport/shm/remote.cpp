// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/remote.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace hcomm::transport {

PeerMaps::State PeerMaps::find(uint32_t member, uint64_t id, PeerMapPointer& found) {
  take_arrivals();
  const Key key{member, id};
  auto at = entries_.find(key);
  if (at == entries_.end()) {
    make_room();
    at = entries_.emplace(key, Entry{}).first;
    waiting_++;
  }
  Entry& entry = at->second;
  entry.used = ++uses_;
  if (entry.state == State::waiting) ask(key, entry);
  const State state = entry.state;
  found = entry.map;
  if (state == State::refused) entries_.erase(at);  // another message may have better luck
  return state;
}

void PeerMaps::ask(const Key& key, Entry& entry) {
  const int64_t now = now_ns();
  if (entry.asked_ns != 0 && now - entry.asked_ns < kAskEveryNs) return;
  const int error = ask_(key.first, key.second);
  if (error == EAGAIN) return;
  entry.asked_ns = now;
  if (error != 0) settle(entry, nullptr);
}

void PeerMaps::settle(Entry& entry, PeerMapPointer map) {
  if (entry.state != State::waiting) return;
  entry.state = map ? State::ready : State::refused;
  entry.map = std::move(map);
  waiting_--;
}

bool PeerMaps::take_arrivals() {
  if (!arrived_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  arrived_.store(false, std::memory_order_relaxed);
  for (auto& [key, map] : inbox_) {
    const auto at = entries_.find(key);
    if (at != entries_.end()) settle(at->second, std::move(map));
  }
  inbox_.clear();
  return true;
}

void PeerMaps::make_room() {
  if (entries_.size() < kMaxMaps) return;
  auto oldest = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->second.state == State::waiting) continue;
    if (oldest == entries_.end() || at->second.used < oldest->second.used) oldest = at;
  }
  if (oldest != entries_.end()) entries_.erase(oldest);
}

void PeerMaps::deliver(uint32_t member, Mail mail) {
  auto map = std::make_shared<PeerMap>();
  if (mail.same_process && mail.letter.pointer != 0) {
    map->base = reinterpret_cast<const std::byte*>(mail.letter.pointer);
    map->bytes = mail.letter.bytes;
  } else if (mail.fd) {
    map->mapping = map_shared_pages(mail.fd.get(), Access::read);
    map->base = map->mapping.base();
    map->bytes = map->mapping.bytes();
  }
  if (map->base == nullptr) map = nullptr;
  const std::lock_guard lock(mutex_);
  inbox_.emplace_back(Key{member, mail.letter.id}, std::move(map));
  arrived_.store(true, std::memory_order_release);
}

size_t pull_bytes(int pid, uint64_t address, std::byte* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const iovec local{to + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

bool can_pull(int pid, const AreaHead& head) {
  uint64_t seen[2] = {0, 0};
  const size_t got =
      pull_bytes(pid, head.probe_address, reinterpret_cast<std::byte*>(seen), sizeof seen);
  return got == sizeof seen && std::memcmp(seen, head.probe_value, sizeof seen) == 0;
}

}  // namespace hcomm::transport
