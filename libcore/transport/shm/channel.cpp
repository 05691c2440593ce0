// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/copy.h"

namespace hcomm::transport {

namespace {

constexpr uint32_t kLineMask = kLines - 1;
static_assert((kLines & kLineMask) == 0);

// Below, a copy through the ring costs less than following a reference.
constexpr size_t kMapFrom = 4 * kKiB;
constexpr size_t kPullFrom = 16 * kKiB;

constexpr size_t kMinFragment = 8 * kKiB, kMaxFragment = 256 * kKiB;
// How much one call of send copies, so that who sends and receives at once does both in turn.
constexpr size_t kSendBytes = 256 * kKiB;

// Fragments from this size on are copied past the caches while the peer's core is far.
constexpr size_t kStreamFrom = 2 * kKiB;
constexpr size_t kPrefetchTo = 8 * kKiB;
constexpr uint32_t kMeasureEvery = 64;  // fragments
constexpr double kSharedPatience_ns = 500'000;  // less than what a waiting rank spins

uint32_t turn_of(uint64_t line) {
  return static_cast<uint32_t>(line + 1);
}

// The two copies of a message overlap but for one fragment, and each fragment costs a fixed time:
// best where both are alike, at the square root of the length.
size_t fragment_bytes(size_t message_bytes, uint64_t ring_bytes) {
  const auto magnitude = static_cast<unsigned>(std::bit_width(message_bytes * 2048 - 1));
  const size_t best = size_t{1} << ((magnitude + 1) / 2);
  const size_t wanted = std::clamp(best, kMinFragment, kMaxFragment);
  return std::min<size_t>(wanted, ring_bytes / 2 / kCacheLine * kCacheLine);
}

}  // namespace

void ShmPeer::wake() const {
  if (head->asleep.exchange(0, std::memory_order_acq_rel) == 0) return;
  const char one = 1;
  // A full queue is as good as our byte: the doorbell is readable.
  while (::sendto(ring_from, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL, doorbell.get(),
                  doorbell.bytes()) < 0 &&
         errno == EINTR) {
  }
}

// -- writing ------------------------------------------------------------------------------------

ShmWriter::ShmWriter(const ChannelPlace& place, const ShmPeer& peer)
    : peer_(peer),
      lines_(place.memory->lines(place.self, place.slot, peer.member)),
      ring_(place.memory->ring(place.self, place.slot, peer.member)),
      ring_bytes_(place.memory->layout().ring_bytes),
      progress_(place.memory->progress(peer.member, place.slot, place.self)),
      shared_(place.shared),
      copy_(copy_near),
      far_ticks_(static_cast<uint64_t>(place.far_ns * ticks_per_ns())) {
  if (shared_ != nullptr) shared_->serve(*this);
}

bool ShmWriter::refresh() {
  const uint64_t consumed = progress_.consumed.load(std::memory_order_acquire);
  if (consumed == consumed_ || consumed - consumed_ > tail_ - consumed_) return false;
  if (shared_lines_ != 0) give_back(consumed);
  consumed_ = consumed;
  ring_freed_ = ring_used_after_[(consumed - 1) & kLineMask];
  return true;
}

// Of the shared ring, what was in the lines up to `consumed`.
void ShmWriter::give_back(uint64_t consumed) {
  for (uint64_t line = consumed_; line != consumed; line++) {
    const uint64_t number = std::exchange(shared_in_[line & kLineMask], 0);
    if (number == 0) continue;
    shared_lines_--;
    shared_->passed(number);
  }
}

bool ShmWriter::moved() {
  const bool seen = std::exchange(looked_, false);
  return refresh() || seen;
}

Line* ShmWriter::free_line() {
  if (tail_ - consumed_ == kLines && !refresh()) return nullptr;
  return &lines_[tail_ & kLineMask];
}

std::byte* ShmWriter::free_ring(size_t bytes) {
  const uint64_t taken = round_up(bytes, kCacheLine);
  const bool wraps = ring_at_ + taken > ring_bytes_;
  const uint64_t skipped = wraps ? ring_bytes_ - ring_at_ : 0;
  if (ring_used_ + skipped + taken - ring_freed_ > ring_bytes_) {
    refresh();
    if (ring_used_ + skipped + taken - ring_freed_ > ring_bytes_) return nullptr;
  }
  std::byte* found = ring_ + (wraps ? 0 : ring_at_);
  ring_at_ = static_cast<uint64_t>(found - ring_) + taken;
  ring_used_ += skipped + taken;
  return found;
}

void ShmWriter::publish(Line& line, const Outgoing& message, Way way) {
  line.bytes = message.bytes;
  line.label = message.label;
  line.way = way;
  ring_used_after_[tail_ & kLineMask] = ring_used_;
  line.turn.store(turn_of(tail_), std::memory_order_release);
  tail_++;
  peer_.wake_if_asleep();
}

void ShmWriter::publish_fragment(Line& line, const Outgoing& message, Way way,
                                 const Fragment& fragment) {
  std::memcpy(line.payload, &fragment, sizeof fragment);
  publish(line, message, way);
}

// How long a line takes to come back from the core that read it last tells how far away that core
// is. Twice in a row, so that an interrupt in between is not taken for distance.
void ShmWriter::measure_distance(Line& line) {
  if (tail_ < kLines) return;  // nobody has read it yet
  const uint64_t start = ticks();
  line.turn.exchange(turn_of(tail_ - kLines), std::memory_order_acq_rel);  // what is there already
  const bool is_far = ticks_after() - start > far_ticks_;
  if (is_far == was_far_) copy_ = is_far ? copy_far : copy_near;
  was_far_ = is_far;
}

Status ShmWriter::send(Outgoing& message) {
  if (message.bytes <= kInlineBytes) return send_in_line(message);
  if (message.ticket != 0) {
    if (const Status status = settle(message); !status.ok() || message.ticket != 0) return status;
  }
  if (message.complete) return {};
  if (!message.begun && send_reference(message)) return {};
  return send_fragments(message);
}

Status ShmWriter::send_in_line(Outgoing& message) {
  if (message.complete) return {};
  Line* line = free_line();
  if (line == nullptr) return {};
  line->in_line_bytes = static_cast<uint8_t>(message.bytes);
  if (message.segment_count == 1) {
    copy_near(line->payload, message.segments->data, message.bytes);
    message.done = message.bytes;
  } else {
    gather({message.segments, message.segment_count}, message.position,
           {line->payload, message.bytes}, copy_near);
    message.done = message.bytes;
  }
  publish(*line, message, Way::in_line);
  message.begun = true;
  message.complete = true;
  return {};
}

Status ShmWriter::send_fragments(Outgoing& message) {
  const size_t most = fragment_bytes(message.bytes, ring_bytes_);
  size_t budget = kSendBytes;
  while (message.done < message.bytes && budget != 0) {
    Line* line = free_line();
    if (line == nullptr) return {};
    if (fragments_++ % kMeasureEvery < 2) measure_distance(*line);
    Fragment fragment;
    const bool shared = message.fanout != nullptr;
    if (shared ? !next_shared(message, most, fragment) : !next_fragment(message, most, fragment))
      return {};
    far_fence();  // a release store does not wait for stores that go past the caches
    publish_fragment(*line, message, shared ? Way::shared : Way::bounce, fragment);
    message.begun = true;
    message.done += fragment.bytes;
    budget -= std::min<size_t>(budget, fragment.bytes);
  }
  message.complete = message.done == message.bytes;
  return {};
}

bool ShmWriter::next_fragment(Outgoing& message, size_t most, Fragment& fragment) {
  const size_t bytes = std::min(most, message.bytes - message.done);
  std::byte* to = free_ring(bytes);
  if (to == nullptr) return false;
  if (bytes < kStreamFrom) prefetch_to_write(to, bytes);
  gather({message.segments, message.segment_count}, message.position, {to, bytes},
         bytes >= kStreamFrom ? copy_ : copy_near);
  fragment = {static_cast<uint64_t>(to - ring_), bytes, 0};
  return true;
}

// A peer that does not take what lies in the shared ring must not hold up the others for good: who
// has waited long for room goes on by its own ring. It is at the end of what was copied so far.
bool ShmWriter::next_shared(Outgoing& message, size_t most, Fragment& fragment) {
  const bool large = std::min(most, message.bytes - message.done) >= kStreamFrom;
  const SharedRing::Part part = shared_->next(message, most, large ? copy_ : copy_near);
  if (part.number == 0) {
    if (waited_long()) {
      message.position = message.fanout->position;
      message.fanout->channels--;
      message.fanout = nullptr;
    }
    return false;
  }
  full_since_ticks_ = 0;
  shared_in_[tail_ & kLineMask] = part.number;
  shared_lines_++;
  fragment = {part.at, part.bytes, 0};
  return true;
}

bool ShmWriter::waited_long() {
  const uint64_t now = ticks();
  if (full_since_ticks_ == 0) full_since_ticks_ = now;
  if (static_cast<double>(now - full_since_ticks_) < kSharedPatience_ns * ticks_per_ns())
    return false;
  full_since_ticks_ = 0;
  return true;
}

bool ShmWriter::proven(uint64_t id) const {
  return std::find(proven_.begin(), proven_.end(), id) != proven_.end();
}

bool ShmWriter::send_reference(Outgoing& message) {
  const bool mapped = message.exported && message.bytes >= kMapFrom;
  const bool pulled = !mapped && message.segment_count == 1 && message.bytes >= kPullFrom &&
                      peer_.pulled_by != nullptr &&
                      peer_.pulled_by->load(std::memory_order_acquire) == Pull::possible;
  if (!mapped && !pulled) return false;
  Line* line = free_line();
  if (line == nullptr) return true;
  if (mapped) {
    publish_fragment(*line, message, Way::mapped,
                     {message.exported->offset, message.bytes, message.exported->id});
    if (proven(message.exported->id)) message.done = message.bytes;
  } else {
    const auto address = reinterpret_cast<uint64_t>(message.segments[0].data);
    publish_fragment(*line, message, Way::pulled, {address, message.bytes, 0});
  }
  message.begun = true;
  message.ticket = tail_;
  return true;
}

Status ShmWriter::settle(Outgoing& message) {
  refresh();
  if (consumed_ < message.ticket) return {};
  const bool refused = progress_.refused.load(std::memory_order_relaxed) == message.ticket;
  const bool tentative = message.done != message.bytes;
  message.ticket = 0;
  if (!refused) {
    if (tentative && message.exported)
      proven_[next_proven_++ % proven_.size()] = message.exported->id;
    message.done = message.bytes;
    message.complete = true;
    return {};
  }
  if (!tentative) {  // others have followed it: too late for the ring
    error_ = fmt::format(
        "send: the peer can no longer map an allocation that it had mapped before ({} bytes of "
        "hcommMemAlloc); look at its limits (ulimit -v, sysctl vm.max_map_count)",
        message.bytes);
    return Code::system;
  }
  const uint64_t from = progress_.refused_at.load(std::memory_order_relaxed);
  if (from >= message.bytes) {
    error_ = fmt::format("send: the peer says that it has read {} of {} bytes", from,
                         message.bytes);
    return Code::internal;
  }
  message.done = from;
  message.position = {0, from};
  return {};
}

// -- reading ------------------------------------------------------------------------------------

ShmReader::ShmReader(const ChannelPlace& place, const ShmPeer& peer, PeerMaps& maps)
    : peer_(peer),
      lines_(place.memory->lines(peer.member, place.slot, place.self)),
      ring_(place.memory->ring(peer.member, place.slot, place.self)),
      shared_ring_(place.memory->ring(peer.member, place.slot, peer.member)),
      ring_bytes_(place.memory->layout().ring_bytes),
      progress_(place.memory->progress(place.self, place.slot, peer.member)),
      maps_(maps) {}

bool ShmReader::moved() {
  noticed_ = std::max(noticed_, head_);
  const uint64_t before = noticed_;
  while (noticed_ - head_ < kLines &&
         lines_[noticed_ & kLineMask].turn.load(std::memory_order_acquire) == turn_of(noticed_))
    noticed_++;
  return noticed_ != before;
}

Status ShmReader::open(Incoming& message) {
  if (open_ || message.complete()) return {};
  if (lines_[head_ & kLineMask].turn.load(std::memory_order_acquire) != turn_of(head_)) return {};
  return open_line(message);
}

Status ShmReader::peek(Incoming& message, View& view) {
  view = {};
  if (const Status status = open(message); !status.ok() || !open_) return status;
  if (way_ == Way::pulled)
    view_stage(message, view);
  else
    view = {data_ + used_, bytes_ - used_};
  return {};
}

Status ShmReader::open_line(Incoming& message) {
  const Line& line = lines_[head_ & kLineMask];
  if (!(line.label == message.label) || line.bytes != message.bytes)
    return fail(Code::invalid_usage,
                difference_text(message.label, message.bytes, line.label, line.bytes));
  message.begun = true;
  way_ = line.way;
  used_ = 0;
  if (way_ == Way::in_line) {
    bytes_ = line.in_line_bytes;
    if (bytes_ != message.bytes || bytes_ > kInlineBytes)
      return fail(Code::internal, fmt::format("receive: {} of {} bytes in a line of {}", bytes_,
                                              message.bytes, kInlineBytes));
    data_ = line.payload;
    open_ = true;
    if (bytes_ == 0) pass_line();
    return {};
  }
  Fragment fragment;
  std::memcpy(&fragment, line.payload, sizeof fragment);
  bytes_ = fragment.bytes;
  if (bytes_ == 0 || bytes_ > message.bytes - message.done)
    return fail(Code::internal,
                fmt::format("receive: a part of {} bytes where {} of {} are missing", bytes_,
                            message.bytes - message.done, message.bytes));
  if (way_ == Way::mapped) {
    const Status status = open_mapped(fragment);
    if (status == Code::unavailable) {
      refuse_line(message);
      return {};
    }
    return status;
  }
  return open_fragment(fragment);
}

// What a peer of this library never writes: another program does, or memory is damaged.
Status ShmReader::fail(Code code, std::string text) {
  error_ = std::move(text);
  return code;
}

Status ShmReader::outside(const Fragment& fragment, std::string_view what, size_t bytes) {
  return fail(Code::internal, fmt::format("receive: bytes {} to {} of {} of {} bytes", fragment.at,
                                          fragment.at + fragment.bytes, what, bytes));
}

Status ShmReader::open_fragment(const Fragment& fragment) {
  if (way_ == Way::bounce || way_ == Way::shared) {
    if (fragment.at > ring_bytes_ || fragment.bytes > ring_bytes_ - fragment.at)
      return outside(fragment, "a ring", ring_bytes_);
    data_ = (way_ == Way::bounce ? ring_ : shared_ring_) + fragment.at;
    if (fragment.bytes <= kPrefetchTo) prefetch_to_read(data_, fragment.bytes);
  } else if (way_ == Way::pulled) {
    address_ = fragment.at;
    staged_ = 0;
  } else {
    return fail(Code::internal,
                fmt::format("receive: no message travels by way {}", static_cast<int>(way_)));
  }
  open_ = true;
  return {};
}

// Unavailable: the owner cannot or will not let us map it. Not open: the mapping is on its way.
Status ShmReader::open_mapped(const Fragment& fragment) {
  if (map_ == nullptr || map_id_ != fragment.id) {
    PeerMapPointer found;
    const PeerMaps::State state = maps_.find(peer_.member, fragment.id, found);
    if (state == PeerMaps::State::refused) return Code::unavailable;
    if (state == PeerMaps::State::waiting) return {};
    map_ = std::move(found);
    map_id_ = fragment.id;
  }
  if (fragment.at > map_->bytes || fragment.bytes > map_->bytes - fragment.at)
    return outside(fragment, "an allocation", map_->bytes);
  data_ = map_->base + fragment.at;
  open_ = true;
  return {};
}

// Pulls the next part when the last one is used up; a part that comes short ends in the ring.
void ShmReader::view_stage(const Incoming& message, View& view) {
  if (stage_ == nullptr) stage_ = std::make_unique_for_overwrite<Stage>();
  if (staged_ == 0) {
    const size_t wanted = std::min(kStageBytes, bytes_ - used_);
    if (pull_bytes(peer_.pid, address_ + used_, stage_->bytes, wanted) != wanted) {
      refuse_line(message);
      return;
    }
    staged_ = wanted;
    data_ = stage_->bytes;
  }
  view = {data_, staged_};
}

Status ShmReader::receive(Incoming& message, std::span<const Segment> to) {
  while (!message.complete()) {
    if (const Status status = open(message); !status.ok() || !open_) return status;
    if (way_ == Way::pulled) {
      pull_into(message, to);
    } else {
      const Copy copy = message.past_caches ? copy_far : copy_near;
      if (to.size() == 1)
        copy(to[0].data + message.done, data_ + used_, bytes_ - used_);
      else
        scatter({data_ + used_, bytes_ - used_}, to, message.done, copy);
      advance(message, bytes_ - used_);
    }
  }
  return {};
}

void ShmReader::release(Incoming& message, size_t bytes) {
  const size_t viewed = way_ == Way::pulled ? staged_ : bytes_ - used_;
  HCOMM_CHECK(open_ && bytes <= viewed, "released {} of {} bytes", bytes, viewed);
  if (way_ == Way::pulled) {
    staged_ -= bytes;
    data_ += bytes;
  }
  advance(message, bytes);
}

void ShmReader::advance(Incoming& message, size_t bytes) {
  used_ += bytes;
  message.done += bytes;
  if (used_ == bytes_) pass_line();
}

// Straight to where the bytes belong.
void ShmReader::pull_into(Incoming& message, std::span<const Segment> to) {
  while (open_) {
    const Segment piece = piece_at(to, message.done);
    const size_t bytes = std::min(piece.bytes, bytes_ - used_);
    if (pull_bytes(peer_.pid, address_ + used_, piece.data, bytes) != bytes)
      return refuse_line(message);
    staged_ = 0;
    advance(message, bytes);
  }
}

void ShmReader::pass_line() {
  open_ = false;
  head_++;
  progress_.consumed.store(head_, std::memory_order_release);
  peer_.wake_if_asleep();
}

void ShmReader::refuse_line(const Incoming& message) {
  progress_.refused_at.store(message.done, std::memory_order_relaxed);
  progress_.refused.store(head_ + 1, std::memory_order_relaxed);
  pass_line();
}

}  // namespace hcomm::transport
