// SPDX-License-Identifier: Apache-2.0
#include "comm/control/control.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/process.h"

namespace hcomm::comm {

namespace {

// The hub answers at the same deadlines and with better texts: it is given this much longer.
constexpr int64_t kGraceMs = 1000;
constexpr int64_t kFlushMs = 1000;
constexpr size_t kMaxSignatureBytes = 256;

[[noreturn]] void throw_failure(const Failure& failure, const Circle& circle) {
  throw Error(failure.code, failure.text, failure.peer_in(circle.members));
}

Failure malformed_answer() {
  return {.code = Code::internal, .peer = 0, .text = "rank 0 sent a malformed answer"};
}

Deadline with_grace(Deadline deadline) {
  return deadline.endless() ? deadline : Deadline::after_ms(deadline.left_ms() + kGraceMs);
}

uint32_t wire_ms(Deadline deadline) {
  return deadline.endless() ? 0 : static_cast<uint32_t>(std::max<int64_t>(deadline.left_ms(), 1));
}

std::string_view view(const Nonce& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::unique_ptr<Control> Control::join(Service& service, const Join& join) {
  const Nonce random = random_nonce();
  Hello hello;
  hello.library = join.library_version;
  hello.job = fingerprint(join.root.nonce);
  hello.rank = join.rank;
  hello.ranks = join.ranks;
  hello.pid = static_cast<uint32_t>(getpid());
  std::memcpy(&hello.attempt, random.data(), sizeof hello.attempt);
  hello.challenge = view(random_nonce());
  hello.host = host_name();
  hello.settings = join.settings;
  if (hello.settings.size() > kMaxHelloBytes / 2)
    fail(Code::invalid_argument, "join: {} bytes of settings; {} is the limit",
         hello.settings.size(), kMaxHelloBytes / 2);
  Welcomed welcomed = knock(join.root, hello, join.deadline);
  std::unique_ptr<Control> control(new Control(service, join, std::move(welcomed)));
  control->wait_ready(join.deadline);
  return control;
}

Control::Control(Service& service, const Join& join, Welcomed welcomed)
    : service_(service),
      rank_(join.rank),
      ranks_(join.ranks),
      link_(service, std::move(welcomed.fd), std::move(welcomed.reader)) {
  set_control_options(link_.fd());
  while (const std::optional<Frame> frame = link_.next()) handle(*frame);  // came with the welcome
  link_.start([this] { receive(); });
}

Control::~Control() {
  if (service_.inherited()) return;
  on_failure({});
  leave();
  link_.stop();
  service_.cancel(delivery_);
}

std::string Control::member_text(uint32_t rank) const {
  if (rank >= members_.size()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (host {}, pid {})", rank, members_[rank].host, members_[rank].pid);
}

void Control::wait_ready(Deadline deadline) {
  const Deadline until = with_grace(deadline);
  Lock lock(mutex_);
  while (state_ == State::joining) {
    if (until.passed())
      fail(Code::timeout,
           "join as rank {} of {}: rank 0 let us in but did not say in time that all had joined; "
           "is its process stopped?",
           rank_, ranks_);
    changed_.wait_for(lock, std::chrono::milliseconds(std::min<int64_t>(until.left_ms(), 60'000)));
  }
  if (members_.empty()) throw Error(end_.code, end_.text, end_.peer);
}

void Control::wait_for(Lock& lock, const Waiting& waiting, Deadline deadline) {
  while (!waiting.done && !deadline.passed())
    changed_.wait_for(lock,
                      std::chrono::milliseconds(std::min<int64_t>(deadline.left_ms(), 60'000)));
}

std::vector<std::string> Control::exchange(const Circle& circle, std::string_view what,
                                           std::string_view mine, Deadline deadline) {
  HCOMM_CHECK(!service_.here(), "an exchange waits for the service thread");
  Waiting waiting{.members = circle.members};
  Lock lock(mutex_);
  if (const Failure* failure = over(circle)) throw_failure(*failure, circle);
  if (circle.index == 0 && circle.members.size() == 1) return {std::string(mine)};
  const Key key{circle.communicator, ++rounds_[circle.communicator]};
  const Post post{.communicator = key.first,
                  .round = key.second,
                  .index = circle.index,
                  .size = static_cast<uint32_t>(circle.members.size()),
                  .left_ms = wire_ms(deadline),
                  .what = fmt::format("communicator {}: exchange of {}", circle.name, what),
                  .text = std::string(mine)};
  const Packet frame = post.encode(Kind::post);  // throws when it is too long
  exchanges_[key] = &waiting;
  link_.send(frame);
  wait_for(lock, waiting, with_grace(deadline));
  exchanges_.erase(key);
  if (!waiting.done)
    fail(Code::timeout, "{} timed out and {} does not answer; is it stopped?", post.what,
         member_text(0));
  if (waiting.failure.code != Code::ok) throw_failure(waiting.failure, circle);
  return std::move(waiting.parts);
}

void Control::report(const Failure& failure) {
  const Lock lock(mutex_);
  if (state_ == State::left) return;
  note(failure);
  if (state_ == State::joined) link_.send(failure.encode());
}

void Control::on_failure(FailureCallback callback) {
  const std::lock_guard callback_lock(callback_mutex_);
  callback_ = std::move(callback);
  if (!callback_) return;
  const Lock lock(mutex_);
  delivered_ = 0;
  if (failures_.empty() || delivery_due_) return;
  delivery_due_ = true;
  delivery_ = service_.run_after(0, [this] { deliver(); });
}

void Control::stalled(uint64_t communicator, uint32_t index, uint32_t size, uint64_t sequence,
                      std::string_view signature) {
  const Post post{.communicator = communicator,
                  .round = sequence,
                  .index = index,
                  .size = size,
                  .text = std::string(signature.substr(0, kMaxSignatureBytes))};
  const Packet frame = post.encode(Kind::signature);
  const Lock lock(mutex_);
  if (state_ == State::joined) link_.send(frame);
}

std::vector<uint32_t> Control::not_reported(uint64_t communicator, uint32_t size, uint64_t sequence,
                                            Deadline deadline) {
  HCOMM_CHECK(!service_.here(), "a question waits for the service thread");
  Waiting waiting;
  Lock lock(mutex_);
  if (state_ != State::joined) return {};
  const uint32_t number = ++questions_asked_;
  const Post question{
      .communicator = communicator, .round = sequence, .index = number, .size = size};
  questions_[number] = &waiting;
  link_.send(question.encode(Kind::question));
  wait_for(lock, waiting, deadline);
  questions_.erase(number);
  return std::move(waiting.indices);
}

void Control::leave() {
  if (service_.inherited()) return;
  {
    const Lock lock(mutex_);
    const bool open = state_ == State::joining || state_ == State::joined;
    state_ = State::left;
    if (!open) return;
    end_ = {.code = Code::invalid_usage,
            .rank = static_cast<int>(rank_),
            .text = "this rank has left its job"};
    fail_all(end_);
    Encoder goodbye(Kind::goodbye);
    link_.send(packet(goodbye));
    link_.finish_sending();
  }
  link_.flush(kFlushMs);
}

const Failure* Control::over(const Circle& circle) const {
  if (state_ == State::cut || state_ == State::left) return &end_;
  for (const Failure& failure : failures_) {
    const bool member_died = failure.communicator == 0 && failure.peer_in(circle.members) >= 0;
    if (failure.communicator == circle.communicator || member_died) return &failure;
  }
  return nullptr;
}

void Control::fail_all(const Failure& failure) {
  for (auto& [key, waiting] : exchanges_) {
    waiting->failure = failure;
    waiting->done = true;
  }
  for (auto& [number, waiting] : questions_) waiting->done = true;
  changed_.notify_all();
}

void Control::note(const Failure& failure) {
  const bool known = std::any_of(failures_.begin(), failures_.end(), [&](const Failure& each) {
    return each.communicator == failure.communicator &&
           (failure.communicator != 0 || each.peer == failure.peer);
  });
  if (known) return;
  failures_.push_back(failure);
  for (auto& [key, waiting] : exchanges_) {
    const bool member_died = failure.communicator == 0 && failure.peer_in(waiting->members) >= 0;
    if (key.first != failure.communicator && !member_died) continue;
    if (waiting->done) continue;  // it has all parts, and has not woken yet
    waiting->failure = failure;
    waiting->done = true;
  }
  changed_.notify_all();
  if (delivery_due_) return;
  delivery_due_ = true;
  delivery_ = service_.run_after(0, [this] { deliver(); });
}

void Control::deliver() {
  const std::lock_guard callback_lock(callback_mutex_);
  std::vector<Failure> due;
  {
    const Lock lock(mutex_);
    delivery_due_ = false;
    if (!callback_) return;  // they are kept for the one that comes
    due.assign(failures_.begin() + static_cast<std::ptrdiff_t>(delivered_), failures_.end());
    delivered_ = failures_.size();
  }
  for (const Failure& failure : due) callback_(failure);
}

void Control::receive() {
  const bool open = link_.receive();
  while (const std::optional<Frame> frame = link_.next()) handle(*frame);
  if (!open || link_.reader().broken()) handle_end();
}

void Control::handle(const Frame& frame) {
  switch (frame.kind) {
    case Kind::ready:
      return handle_ready(frame.body);
    case Kind::gathered:
      return handle_gathered(frame.body);
    case Kind::not_gathered:
      return handle_not_gathered(frame.body);
    case Kind::answer:
      return handle_answer(frame.body);
    case Kind::refused: {
      const Refusal refusal = Refusal::decode(frame.body);
      const Lock lock(mutex_);
      if (state_ != State::joining) return;
      state_ = State::cut;
      end_ = {.code = static_cast<Code>(refusal.code), .rank = 0, .text = refusal.text};
      changed_.notify_all();
      return;
    }
    case Kind::failure: {
      const std::optional<Failure> failure = Failure::decode(frame.body);
      const Lock lock(mutex_);
      if (failure && state_ == State::joined) note(*failure);
      return;
    }
    case Kind::goodbye: {
      const Lock lock(mutex_);
      hub_left_ = true;
      return;
    }
    default:
      return;  // of a later version
  }
}

void Control::handle_ready(std::string_view body) {
  Decoder decoder(body);
  const uint32_t world = decoder.u32();
  const uint32_t count = decoder.u32();
  std::vector<Member> members;
  for (uint32_t i = 0; i < count && decoder.fine(); i++) {
    Member member;
    member.host = decoder.text();
    member.pid = decoder.u32();
    members.push_back(std::move(member));
  }
  const Lock lock(mutex_);
  if (!decoder.at_end() || count != ranks_ || state_ != State::joining) return;
  members_ = std::move(members);
  world_ = world;
  state_ = State::joined;
  changed_.notify_all();
}

void Control::handle_gathered(std::string_view body) {
  Decoder decoder(body);
  const uint64_t communicator = decoder.u64();
  const Key key{communicator, decoder.u64()};
  const uint32_t size = decoder.u32();
  const Lock lock(mutex_);
  const auto found = exchanges_.find(key);
  if (found == exchanges_.end()) return;  // it has timed out here
  Waiting& waiting = *found->second;
  for (uint32_t i = 0; i < size && decoder.fine(); i++) waiting.parts.emplace_back(decoder.text());
  if (!decoder.at_end())
    waiting.failure = malformed_answer();
  waiting.done = true;
  changed_.notify_all();
}

void Control::handle_not_gathered(std::string_view body) {
  Decoder decoder(body);
  const uint64_t communicator = decoder.u64();
  const Key key{communicator, decoder.u64()};
  Failure failure = Failure::decode(decoder.rest()).value_or(malformed_answer());
  const Lock lock(mutex_);
  const auto found = exchanges_.find(key);
  if (found == exchanges_.end()) return;
  found->second->failure = std::move(failure);
  found->second->done = true;
  changed_.notify_all();
}

void Control::handle_answer(std::string_view body) {
  Decoder decoder(body);
  const uint32_t number = decoder.u32();
  const uint32_t count = decoder.u32();
  const Lock lock(mutex_);
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  for (uint32_t i = 0; i < count && decoder.fine(); i++)
    found->second->indices.push_back(decoder.u32());
  found->second->done = true;
  changed_.notify_all();
}

// The connection is over: rank 0's process has died, unless it or we said goodbye.
void Control::handle_end() {
  link_.stop();
  const Lock lock(mutex_);
  if (state_ == State::cut || state_ == State::left) return;
  const bool joining = state_ == State::joining;
  state_ = State::cut;
  const std::string who = joining ? "rank 0" : member_text(0);
  end_ = {.code = Code::peer_failed,
          .rank = static_cast<int>(rank_),
          .peer = 0,
          .host = joining ? "" : members_[0].host};
  if (hub_left_) {
    end_.text = who + " has destroyed its communicators and serves the job no more";
  } else {
    end_.text = fmt::format("{} died: {}; look at its output", who, link_.ended());
    if (!joining) note(end_);
  }
  fail_all(end_);
}

}  // namespace hcomm::comm
