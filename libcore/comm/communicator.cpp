// SPDX-License-Identifier: Apache-2.0
// The life of operations; setup.cpp makes communicators.
#include "comm/communicator.h"

#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "schedule/schedule.h"

namespace hcomm::comm {

using schedule::Collective;
using schedule::kInput;
using schedule::kOutput;

namespace {

constexpr int64_t kStall_ns = 250'000'000;   // then the call is told to the hub
constexpr int64_t kWaiting_ns = 1'000'000;   // then the recorder shows who is waited for
constexpr int64_t kVerdict_ms = 2000;        // how long a failed step waits for the hub's word
constexpr int64_t kAnswer_ms = 200;          // how long a timeout waits to learn who did not come

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }

}  // namespace

void Communicator::wait_for_turn(uint64_t ticket) {
  queued_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint64_t serving = serving_.load(std::memory_order_seq_cst);
    if (serving == ticket) break;
    serving_.wait(serving, std::memory_order_acquire);
  }
  queued_.fetch_sub(1, std::memory_order_relaxed);
}

Code Communicator::run(const Call& call) {
  if (call.collective == Collective::point_to_point) return run(std::span(&call, 1));
  Turn turn(*this);
  turn.enter();
  begin(call);
  engine::Party* self = this;
  if (!finished()) engine::drive({&self, 1}, patience_);
  return end();
}

Code Communicator::run(std::span<const Call> exchange) {
  Turn turn(*this);
  turn.enter();
  begin_exchange(exchange);
  engine::Party* self = this;
  if (!finished()) engine::drive({&self, 1}, patience_);
  return end();
}

bool Communicator::may_begin() {
  finished_ = broken();
  if (membership_.traffic) [[unlikely]] {
    membership_.traffic->begin(membership_.priority);
    in_traffic_ = true;
  }
  return !finished_;
}

void Communicator::begin(const Call& call) {
  const bool again = bound_ != nullptr && call == call_ && bound_->repeats();
  if (!again) call_ = call;
  if (!may_begin()) [[unlikely]] return;
  const uint64_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
  sequence_.store(sequence, std::memory_order_relaxed);
  said_[sequence % kSaid] = said(call);
  if (!again) bound_ = &calls_->of(call);
  if (again || bound_->holds(call)) [[likely]] {
    record();
    bound_->begin_again(low(sequence));
    return;
  }
  try {
    bound_->begin(call, low(sequence));
    record();
  } catch (const std::exception&) {
    cannot_begin();
  }
}

void Communicator::begin_exchange(std::span<const Call> calls) {
  call_ = calls.front();
  if (!may_begin()) [[unlikely]] return;
  exchanged_ = calls.size();
  bound_ = &calls_->of(call_);
  if (bound_->holds(calls)) [[likely]] {
    record();
    bound_->begin_again(0);
    return;
  }
  try {
    bound_->begin_exchange(calls);
    record();
  } catch (const std::exception&) {
    cannot_begin();
  }
}

Prices Communicator::prices() {
  return {[this](const Call& call) { return plans_->predict_us(call); },
          plans_->inputs().machine.copy_us_per_byte};
}

void Communicator::cannot_begin() {
  finished_ = true;
  Code code = Code::internal;
  std::string why;
  try {
    throw;
  } catch (const Error& error) {
    code = error.code();
    why = error.text();
  } catch (const std::bad_alloc&) {
    code = Code::system;
    why = "out of memory";
  } catch (const std::exception& error) {
    why = error.what();
  }
  fail_with(failure_of(code, -1, fmt::format("{} on rank {}: {}", operation_text(), rank(), why)));
}

void Communicator::record() {
  reported_stall_ = false;
  waited_ns_ = 0;
  uint64_t serial = 0;
  trace::OpRecord& record = membership_.recorder->begin(serial);
  record.sequence = sequence_;
  record.count = call_.count;
  record.communicator = low(membership_.id);
  record.plan = low(bound_->plan().hash);
  record.root = call_.root;
  record.collective = static_cast<uint8_t>(call_.collective);
  record.type = static_cast<uint8_t>(call_.type);
  record.op = static_cast<uint8_t>(call_.op);
  membership_.recorder->publish(record, serial);
  record_ = &record;
}

Code Communicator::end() {
  if (in_traffic_) [[unlikely]] membership_.traffic->end(membership_.priority);
  in_traffic_ = false;
  if (record_ == nullptr) [[unlikely]] {  // broken before it began
    failed_operations_ = true;
    return describe_fault().code;
  }
  const bool well = executor().done() && !executor().failed();
  trace::Recorder::end(*record_, well ? trace::OpState::done : trace::OpState::failed);
  record_ = nullptr;
  if (shown_peer_ >= 0) show_waiting(0);
  if (well) [[likely]] return Code::ok;
  failed_operations_ = true;
  if (executor().failed()) explain_failed_step();
  return describe_fault().code;
}

// The operation that met it, where that is not known yet: failures come from the service thread,
// which knows of no operation.
Fault Communicator::describe_fault() {
  const std::lock_guard lock(mutex_);
  if (fault_.operation.empty()) {
    fault_.operation = schedule::name(call_.collective);
    fault_.bytes = call_.count * size_of(call_.type);
    if (fault_.peer >= 0)
      fault_.transport = links_->transport_of(static_cast<uint32_t>(fault_.peer));
  }
  return fault_;
}

// A step failed here. The hub knows more (who died, how the calls differ): ask, and wait a little.
void Communicator::explain_failed_step() {
  const Code code = executor().status().code();
  const int peer = executor().failed_peer();
  if (broken()) return;
  if (code == Code::invalid_usage && call_.collective != Collective::point_to_point) {
    tell_calls();
    if (wait_for_verdict(kVerdict_ms)) return;
  }
  if (code == Code::peer_failed && wait_for_verdict(kVerdict_ms / 2)) return;
  const auto at = static_cast<uint32_t>(peer);
  std::string what;
  if (code == Code::invalid_usage && call_.collective == Collective::point_to_point)
    what = fmt::format("{} sent a message of another length, or is in a collective: a send and its "
                       "receive have equal counts", member_text(at));
  else if (code == Code::invalid_usage)
    what = fmt::format("{} sent a message of another operation or length; all ranks must make the "
                       "same calls in the same order", member_text(at));
  else if (code == Code::peer_failed)
    what = fmt::format("the connection to {} by {} ended; see what that rank printed",
                       member_text(at), links_->transport_of(at));
  else
    what = fmt::format("the {} link to {} failed: {}", links_->transport_of(at), member_text(at),
                       name(code));
  if (const std::string seen = links_->last_error(at); !seen.empty()) what += "; seen: " + seen;
  fail_with(failure_of(code, peer, fmt::format("{} on rank {}: {}", operation_text(), rank(),
                                               what)));
}

bool Communicator::wait_for_verdict(int64_t ms) {
  std::unique_lock lock(mutex_);
  return verdict_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return broken(); });
}

void Communicator::idle(int64_t passed_ns, int64_t since_progress_ns) {
  if (broken()) {
    finished_ = true;
    return;
  }
  if (!held()) waited_ns_ += passed_ns;
  if (since_progress_ns >= kWaiting_ns || shown_peer_ >= 0) show_waiting(since_progress_ns);
  if (since_progress_ns >= kStall_ns && !reported_stall_) {
    reported_stall_ = true;
    if (call_.collective != Collective::point_to_point)
      tell_calls();
  }
  if (config_.timeout_ms > 0 && waited_ns_ >= config_.timeout_ms * 1'000'000) time_out(waited_ns_);
}

// Whom a wait of over a millisecond waits for, since when: for tools. By the job's ranks.
void Communicator::show_waiting(int64_t since_progress_ns) {
  uint32_t step = 0;
  int peer = since_progress_ns >= kWaiting_ns ? executor().waiting_for(step) : -1;
  if (peer >= 0) peer = static_cast<int>(membership_.members[static_cast<size_t>(peer)]);
  const bool moved = since_progress_ns < shown_progress_ns_;
  shown_progress_ns_ = since_progress_ns;
  if (peer == shown_peer_ && !moved) return;
  shown_peer_ = peer;
  trace::RankArea& area = membership_.recorder->area();
  area.waiting_since_ticks.store(ticks(), std::memory_order_relaxed);
  area.waiting_step.store(step, std::memory_order_relaxed);
  area.waiting_peer.store(peer, std::memory_order_relaxed);
}

void Communicator::time_out(int64_t waited_ns) {
  uint32_t step = 0;
  const int peer = executor().waiting_for(step);
  const std::string whom = peer < 0 ? "nobody" : member_text(static_cast<uint32_t>(peer));
  std::vector<uint32_t> absent;
  if (reported_stall_ && call_.collective != Collective::point_to_point)
    absent = control().not_reported(membership_.id, ranks(), sequence_,
                                    Deadline::after_ms(kAnswer_ms));
  fail_with(failure_of(
      Code::timeout, peer,
      fmt::format("{} on rank {}: not done after {:.1f} s, waits for {} in step {}{}; is that rank "
                  "in another call, or stopped? (HCOMM_TIMEOUT={}ms)",
                  operation_text(), rank(), static_cast<double>(waited_ns) / 1e9, whom, step,
                  absent.empty() ? "" : "; not in this call: " + rank_list(absent),
                  config_.timeout_ms)));
  finished_ = true;
}

bool Communicator::prepare_sleep(std::vector<pollfd>& descriptors, int& cap_ms) {
  descriptors.push_back({wake_.get(), POLLIN, 0});
  if (held()) {
    cap_ms = 1;  // nothing tells a sleeper that it may go on
    return !broken();
  }
  return links_->prepare_sleep(descriptors, cap_ms) && !broken();
}

void Communicator::after_sleep() { links_->after_sleep(); }

// -- failures -------------------------------------------------------------------------------------

Failure Communicator::failure_of(Code code, int peer, std::string text) const {
  Failure failure;
  failure.communicator = membership_.id;
  failure.code = code;
  failure.rank = static_cast<int>(rank());
  const bool known = peer >= 0 && static_cast<uint32_t>(peer) < ranks();
  failure.peer = known ? peer : -1;
  const uint32_t member = membership_.members[known ? static_cast<uint32_t>(peer) : rank()];
  failure.host = membership_.line->control().members()[member].host;
  failure.sequence = sequence_;
  failure.text = std::move(text);
  return failure;
}

// Ours first, then everybody's.
void Communicator::fail_with(const Failure& failure) {
  on_failure(failure);
  control().report(failure);
}

// From the service thread, or from this rank's own. Failures of other communicators, and deaths of
// ranks that are no members, are none of ours.
void Communicator::on_failure(const Failure& failure) {
  if (failure.communicator != 0 && failure.communicator != membership_.id) return;
  int peer = failure.peer;
  if (failure.communicator == 0 && peer >= 0) {  // a rank of the job has died: one of ours?
    const auto& members = membership_.members;
    const auto at = std::find(members.begin(), members.end(), static_cast<uint32_t>(peer));
    if (at == members.end()) return;
    peer = static_cast<int>(at - members.begin());
  }
  {
    const std::lock_guard lock(mutex_);
    if (broken()) return;
    fault_ = {.code = failure.code, .peer = peer, .sequence = failure.sequence,
              .host = failure.host, .text = failure.text};
    broken_.store(true, std::memory_order_release);
    verdict_.notify_all();
  }
  if (rank() == 0 || failure.code != Code::aborted)
    log(LogLevel::info, "communicator {}: {}", config_.name, failure.text);
  const uint64_t one = 1;
  const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  (void)written;  // full: it is readable already
}

Fault Communicator::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Communicator::refuse(Fault fault) {
  const std::lock_guard lock(mutex_);
  if (!broken()) fault_ = std::move(fault);
}

void Communicator::abort(std::string_view why) {
  fail_with(failure_of(Code::aborted, -1,
                       fmt::format("communicator {}: aborted by rank {}: {}", config_.name, rank(),
                                   why)));
}

// Counts of a V form differ from rank to rank; those that all know are compared by the label.
std::string Communicator::signature_text(const Said& said) {
  std::string text =
      fmt::format("{}{} {}", schedule::name(said.collective), said.varied ? "_v" : "",
                  name(said.type));
  if (!said.varied) text += fmt::format(" count={}", said.count);
  if (said.cut != 0) text += fmt::format(" (small ones of a group as one, cut {:08x})", said.cut);
  if (reduces(said.collective)) text += fmt::format(" op={}", name(said.op));
  if (rooted(said.collective)) text += fmt::format(" root={}", said.root);
  return text;
}

// Tells the hub what this rank is in, and what it called before: the part of a rank may be done
// long before a peer sees that it was part of another call.
void Communicator::tell_calls() {
  const uint64_t last = sequence_;
  for (uint64_t sequence = last < kSaid ? 1 : last - kSaid + 1; sequence <= last; sequence++)
    control().stalled(membership_.id, rank(), ranks(), sequence,
                      signature_text(said_[sequence % kSaid]));
}

std::string Communicator::operation_text() const {
  if (call_.collective == Collective::point_to_point) {
    const std::string first = fmt::format("{} rank {} ({} count={})",
                                          call_.sending ? "send to" : "receive from", call_.root,
                                          name(call_.type), call_.count);
    return exchanged_ == 1 ? fmt::format("{}: {}", config_.name, first)
                           : fmt::format("{}: group of {} sends and receives, the first: {}",
                                         config_.name, exchanged_, first);
  }
  return fmt::format("{} #{} ({})", config_.name, sequence_.load(), signature_text(said(call_)));
}

std::string Communicator::member_text(uint32_t peer) const {
  const Member& member = membership_.line->control().members()[membership_.members[peer]];
  return fmt::format("rank {} (host {}, pid {})", peer, member.host, member.pid);
}

std::string Communicator::explain(const Call& call) {
  Turn turn(*this);  // plans are made in turn only
  turn.enter();
  std::string text = plans_->explain(call), ways;
  for (uint32_t peer = 0; peer < ranks(); peer++) {
    const std::string way(links_->transport_of(peer));
    if (peer == rank() || ways.find(way) != std::string::npos) continue;
    ways += (ways.empty() ? " " : "+") + way;
  }
  return text + ways;
}

}  // namespace hcomm::comm
