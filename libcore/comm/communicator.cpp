// SPDX-License-Identifier: Apache-2.0
// The life of operations; setup.cpp makes communicators.
#include "comm/communicator.h"

#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "datatype/kernels.h"
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

engine::Buffer buffer_of(const void* data, size_t count, const Blocks& blocks) {
  return {.data = static_cast<std::byte*>(const_cast<void*>(data)),
          .block_elements = count, .counts = blocks.counts, .displs = blocks.displs};
}

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
  Turn turn(*this);
  turn.enter();
  if (call.collective == Collective::point_to_point)
    begin_exchange({&call, 1});
  else
    begin(call);
  engine::Party* self = this;
  if (!finished()) engine::drive({&self, 1}, patience_);
  return end();
}

bool Communicator::may_begin(const Call& call) {
  finished_ = broken();
  if (!finished_) [[likely]] return true;
  call_ = call;
  again_ = false;
  return false;
}

void Communicator::begin(const Call& call) {
  if (!may_begin(call)) return;
  const uint64_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
  sequence_.store(sequence, std::memory_order_relaxed);
  said_[sequence % kSaid] = said(call);
  if (again_ && call == call_) {  // as the last: nothing to look up, nothing to bind
    record(*plan_, call);
    executor_.bind_again({low(sequence_), signature_});
    return;
  }
  again_ = false;
  call_ = call;
  try {
    begin_anew(call);
  } catch (const std::exception&) {
    cannot_begin();
  }
}

void Communicator::begin_exchange(std::span<const Call> calls) {
  if (!may_begin(calls.front())) return;
  again_ = false;
  call_ = calls.front();
  exchanged_ = calls.size();
  try {
    begin_anew(calls);
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

void Communicator::begin_anew(const Call& call) {
  // What is scaled lies elsewhere: never in place.
  Call planned = call;
  if (call.op == Op::premul_sum) planned.in_place = false;
  const Plans::Found found = plans_->find(planned);
  plan_ = found.plan;
  signature_ = found.signature;
  bind(call, *found.plan);
  const uint32_t avg_ranks =
      call.op == Op::avg && ranks() > 1 && reduces(call.collective) ? ranks() : 0;
  executor_.bind({.shape = &found.plan->schedule.shape,
         .program = &found.plan->program,
         .window = found.plan->window,
         .label = {low(sequence_), found.signature},
         .type = call.type,
         .op = call.op,
         .avg_ranks = avg_ranks,
         .store = avg_ranks > 0 ? Store::cached : store_of(call, *found.plan)},
        binding_);
  record(*found.plan, call);
  // Arrays may have changed behind their pointers, scaled inputs must be scaled anew, and mapped
  // memory may have been freed since.
  again_ = !call.varied && call.op != Op::premul_sum && !binding_.buffers[kInput].exported &&
           !binding_.buffers[kOutput].exported;
}

// Results that the caches cannot hold, beside the inputs, until somebody reads them go past them.
Store Communicator::store_of(const Call& call, const Plan& plan) const {
  const schedule::Shape& shape = plan.schedule.shape;
  const uint64_t bytes = (uint64_t{blocks_of(shape, kInput)} + blocks_of(shape, kOutput)) *
                         call.count * size_of(call.type);
  return !call.varied && bytes > cache_share_ ? Store::streaming : Store::cached;
}

void Communicator::bind(const Call& call, const Plan& plan) {
  binding_.element_bytes = size_of(call.type);
  binding_.parts = plan.program.parts;
  binding_.tile_elements =
      plan.tile_bytes == 0 ? SIZE_MAX
                           : std::max<size_t>(1, plan.tile_bytes / binding_.element_bytes);
  binding_.buffers.resize(3);
  binding_.buffers[kInput] = call.op == Op::premul_sum
                                 ? scaled_input(call)
                                 : buffer_of(call.send, call.count, call.send_blocks);
  binding_.buffers[kOutput] = buffer_of(call.recv, call.count, call.recv_blocks);
  if (call.varied) return;
  for (const uint16_t side : {kInput, kOutput}) {
    engine::Buffer& buffer = binding_.buffers[side];
    const size_t bytes =
        blocks_of(plan.schedule.shape, side) * call.count * binding_.element_bytes;
    if (bytes >= 4096) buffer.exported = runtime_.memory().find(buffer.data, bytes);
  }
}

// premul_sum scales each contribution once, at its first read: here, into memory of our own, block
// behind block.
engine::Buffer Communicator::scaled_input(const Call& call) {
  const schedule::Shape shape{.collective = call.collective, .ranks = ranks(), .rank = rank()};
  const engine::Buffer given = buffer_of(call.send, call.count, call.send_blocks);
  const uint32_t blocks = blocks_of(shape, kInput);
  const size_t element_bytes = size_of(call.type);
  size_t elements = 0;
  for (uint32_t i = 0; i < blocks; i++) elements += given.count_of(i);
  scaled_.resize(elements * element_bytes);
  size_t at = 0;
  for (uint32_t i = 0; i < blocks; i++) {
    const size_t count = given.count_of(i);
    if (count == 0) continue;
    scale(call.type, scaled_.data() + at * element_bytes,
          given.data + given.first_of(i) * element_bytes, call.factor, count);
    at += count;
  }
  return buffer_of(scaled_.data(), call.count, {call.send_blocks.counts, nullptr});
}

// Types may differ from message to message; what a pair must agree on is that this is no
// collective, and the length, which the transport compares.
void Communicator::begin_anew(std::span<const Call> calls) {
  constexpr uint64_t kSignature =
      hash_number(static_cast<uint64_t>(Collective::point_to_point), kHashSeed);
  std::vector<std::pair<bool, uint32_t>> pattern;
  binding_.buffers.resize(3);
  binding_.buffers[kInput] = binding_.buffers[kOutput] = {};
  binding_.element_bytes = 1;
  binding_.parts = 1;
  binding_.tile_elements = SIZE_MAX;
  for (const Call& call : calls) {
    pattern.emplace_back(call.sending, call.root);
    const size_t bytes = call.count * size_of(call.type);
    engine::Buffer buffer = buffer_of(call.sending ? call.send : call.recv, bytes, {});
    if (call.sending && bytes >= 4096)
      buffer.exported = runtime_.memory().find(buffer.data, bytes);
    binding_.buffers.push_back(buffer);
  }
  const Plan& plan = plans_->exchange(pattern);
  executor_.bind({.shape = &plan.schedule.shape,
         .program = &plan.program,
         .window = 1,
         .label = {0, low(kSignature)},
         .type = Type::uint8,
         .op = Op::sum},
        binding_);
  record(plan, call_);
}

void Communicator::record(const Plan& plan, const Call& call) {
  reported_stall_ = false;
  waits_from_ns_ = -1;
  uint64_t serial = 0;
  trace::OpRecord& record = membership_.recorder->begin(serial);
  record.sequence = sequence_;
  record.count = call.count;
  record.communicator = low(membership_.id);
  record.plan = low(plan.hash);
  record.root = call.root;
  record.collective = static_cast<uint8_t>(call.collective);
  record.type = static_cast<uint8_t>(call.type);
  record.op = static_cast<uint8_t>(call.op);
  membership_.recorder->publish(record, serial);
  record_ = &record;
}

Code Communicator::end() {
  if (record_ == nullptr) [[unlikely]] {  // broken before it began
    failed_operations_ = true;
    return describe_fault().code;
  }
  const bool well = executor_.done() && !executor_.failed();
  trace::Recorder::end(*record_, well ? trace::OpState::done : trace::OpState::failed);
  record_ = nullptr;
  if (shown_peer_ >= 0) show_waiting(0);
  if (well) [[likely]] return Code::ok;
  failed_operations_ = true;
  if (executor_.failed()) explain_failed_step();
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
  const Code code = executor_.status().code();
  const int peer = executor_.failed_peer();
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

void Communicator::idle(int64_t since_begin_ns, int64_t since_progress_ns) {
  if (broken()) {
    finished_ = true;
    return;
  }
  if (waits_from_ns_ < 0) waits_from_ns_ = since_begin_ns;
  if (since_progress_ns >= kWaiting_ns || shown_peer_ >= 0) show_waiting(since_progress_ns);
  if (since_progress_ns >= kStall_ns && !reported_stall_) {
    reported_stall_ = true;
    if (call_.collective != Collective::point_to_point)
      tell_calls();
  }
  const int64_t waited_ns = since_begin_ns - waits_from_ns_;
  if (config_.timeout_ms > 0 && waited_ns >= config_.timeout_ms * 1'000'000) time_out(waited_ns);
}

// Whom a wait of over a millisecond waits for, since when: for tools. By the job's ranks.
void Communicator::show_waiting(int64_t since_progress_ns) {
  uint32_t step = 0;
  int peer = since_progress_ns >= kWaiting_ns ? executor_.waiting_for(step) : -1;
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
  const int peer = executor_.waiting_for(step);
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
  if (said.merged) text += " (small ones of a group as one)";
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
