// SPDX-License-Identifier: Apache-2.0
// How a communicator comes to be, splits, and ends.
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/calibration/calibrate.h"
#include "comm/communicator.h"
#include "comm/control/host.h"
#include "comm/text.h"

namespace hcomm::comm {

namespace {

constexpr uint32_t kMaxCores = 1024;
constexpr int64_t kHold_ns = 1'000'000;  // beside some round trips; see Traffic
constexpr uint64_t kLeastCredit = 64 * kKiB, kMostCredit = 1024 * kKiB;
constexpr uint64_t kLeastSocketBuffer = 16 * kKiB;

// The cores that this rank may run on, as a bit string that ranks of a node can unite.
std::string core_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string mask(kMaxCores / 8, '\0');
  for (uint32_t core = 0; core < kMaxCores && core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &set)) mask[core / 8] = static_cast<char>(mask[core / 8] | 1 << core % 8);
  return mask;
}

// Where each rank lives and how many cores its node gives to all of them.
struct Places {
  std::vector<uint32_t> node;  // of each rank, numbered by first appearance
  std::vector<std::string> keys;             // of each node
  std::vector<uint32_t> ranks_of, cores_of;  // of each node
  uint64_t cache_bytes = UINT64_MAX;         // the least
};

Places places_of(const std::vector<std::string>& told) {
  Places places;
  std::vector<std::string> masks;
  for (const std::string& each : told) {
    std::vector<std::string> fields = Fields::split(each);
    fields.resize(3);
    fields[1].resize(kMaxCores / 8);
    places.cache_bytes = std::min(places.cache_bytes, Fields::number(fields[2]));
    const size_t at = static_cast<size_t>(
        std::find(places.keys.begin(), places.keys.end(), fields[0]) - places.keys.begin());
    if (at == places.keys.size()) {
      places.keys.push_back(fields[0]);
      masks.emplace_back(kMaxCores / 8, '\0');
      places.ranks_of.push_back(0);
    }
    places.node.push_back(static_cast<uint32_t>(at));
    places.ranks_of[at]++;
    for (size_t i = 0; i < masks[at].size(); i++)
      masks[at][i] = static_cast<char>(masks[at][i] | fields[1][i]);
  }
  for (const std::string& mask : masks) {
    uint32_t cores = 0;
    for (const char byte : mask)
      cores += static_cast<uint32_t>(__builtin_popcount(static_cast<unsigned char>(byte)));
    places.cores_of.push_back(std::max(1u, cores));
  }
  return places;
}

Circle circle_of(const Membership& membership, const Config& config) {
  return {membership.id, config.name, membership.rank, membership.members};
}

}  // namespace

Communicator::Communicator(Runtime& runtime, Membership membership, Config config)
    : runtime_(runtime),
      membership_(std::move(membership)),
      config_(std::move(config)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) fail_system(errno, "eventfd of communicator {}", config_.name);
  listener_ = membership_.line->listen([this](const Failure& failure) { on_failure(failure); });
  try {
    connect();
  } catch (const Error& error) {
    // Those who wait for us learn why we do not come.
    control().report(failure_of(error.code(), error.peer(), error.text()));
    membership_.line->forget(listener_);
    throw;
  } catch (...) {
    membership_.line->forget(listener_);
    throw;
  }
}

void Communicator::connect() {
  const Deadline deadline = Deadline::after_ms(config_.init_timeout_ms);
  const std::string key = host_key(config_);
  Fields mine;
  mine.add(key);
  mine.add(core_mask());
  mine.add_number(last_level_cache_bytes());
  const Circle circle = circle_of(membership_, config_);
  const Places places = places_of(control().exchange(circle, "places", mine.text(), deadline));
  const uint32_t node = places.node[rank()];
  patience_.crowded = places.ranks_of[node] > places.cores_of[node];
  if (config_.spin_us >= 0) patience_.spin_ns = config_.spin_us * 1000;

  links_ = std::make_unique<Links>(
      transport::Place{.rank = rank(), .ranks = ranks(), .communicator = membership_.id,
                       .token = {membership_.token[0], membership_.token[1]}, .host_key = key,
                       .config = &config_, .reactor = &runtime_.service(),
                       .memory = &runtime_.memory()},
      control(), circle, deadline);
  schedule::Machine machine;
  machine.ranks = ranks();
  machine.node = places.node;
  machine.cache_bytes = static_cast<double>(places.cache_bytes);
  machine.cores_of_node = *std::min_element(places.cores_of.begin(), places.cores_of.end());
  std::string link = calibrate(
      machine, *links_, {circle, &control(), deadline, &config_, places.keys, patience_.crowded});
  policy::Inputs inputs = policy::inputs_from(config_, std::move(machine));
  inputs.link = std::move(link);
  plans_ = std::make_unique<Plans>(std::move(inputs), rank(), ranks());
  around_ = {.plans = plans_.get(),
             .memory = &runtime_.memory(),
             .engine = {.links = links_.get(), .recorder = membership_.recorder.get(),
                        .ranks = ranks(), .job_ranks = membership_.members.data()},
             .cache_share = last_level_cache_bytes() / places.ranks_of[node],
             .rank = rank(),
             .ranks = ranks()};
  calls_ = std::make_unique<BoundCalls>(around_);
  bound_ = &calls_->of({});
  agree_on_choice(deadline);
}

// What choices depend on must be equal everywhere, or ranks would run different plans. Where it is
// not, all ranks compare what was said on the first two that differ, and give the same error.
void Communicator::agree_on_choice(Deadline deadline) {
  const policy::Inputs& inputs = plans_->inputs();
  const auto exchange = [&](std::string_view mine) {
    return control().exchange(circle_of(membership_, config_), "choices", mine, deadline);
  };
  const auto hashes = exchange(fmt::format("{:016x}", policy::hash(inputs)));
  const auto other = std::find_if(hashes.begin(), hashes.end(),
                                  [&](const std::string& hash) { return hash != hashes[0]; });
  if (other == hashes.end()) return;
  const auto peer = static_cast<uint32_t>(other - hashes.begin());
  Fields said;
  if (rank() == 0 || rank() == peer)
    for (const auto& [place, text] : policy::sayings(inputs)) {
      said.add(text);
      said.add(fmt::format("'{}' ({})", text, place));
    }
  const auto all = exchange(said.text());
  std::vector<std::string> first = Fields::split(all[0]), second = Fields::split(all[peer]);
  const size_t fields = std::max(first.size(), second.size());
  first.resize(fields, "nothing more");
  second.resize(fields, "nothing more");
  std::string difference = "what they measured differs";
  for (size_t i = 0; i + 1 < fields; i += 2) {
    if (first[i] == second[i]) continue;
    difference =
        fmt::format("rank 0 has {}, rank {} has {}", first[i + 1], peer, second[i + 1]);
    break;
  }
  throw Error(Code::invalid_usage,
              fmt::format("communicator {}: {} and {} would choose different plans: {}; settings "
                          "and the policy file must be equal on all ranks",
                          config_.name, member_text(0), member_text(peer), difference),
              static_cast<int>(rank() == peer ? 0 : peer));
}

Communicator::~Communicator() { membership_.line->forget(listener_); }

// Colour and key of everybody, then the members of ours in order of key and rank.
std::unique_ptr<Communicator> Communicator::split(int color, int key, const Config& config) {
  const Deadline deadline = Deadline::after_ms(config.init_timeout_ms);
  Fields mine;
  mine.add_number(static_cast<uint64_t>(static_cast<int64_t>(color)));
  mine.add_number(static_cast<uint64_t>(static_cast<int64_t>(key)));
  const auto all =
      control().exchange(circle_of(membership_, config_), "colours", mine.text(), deadline);
  const uint64_t serial = ++splits_;
  if (color < 0) return nullptr;
  std::vector<std::pair<int64_t, uint32_t>> chosen;  // key, rank
  for (uint32_t peer = 0; peer < ranks(); peer++) {
    std::vector<std::string> fields = Fields::split(all[peer]);
    fields.resize(2);
    if (static_cast<int64_t>(Fields::number(fields[0])) == color)
      chosen.emplace_back(static_cast<int64_t>(Fields::number(fields[1])), peer);
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<uint32_t> members;
  for (const auto& [order, peer] : chosen) members.push_back(peer);
  return std::make_unique<Communicator>(
      runtime_, child(hash_number(serial, static_cast<uint64_t>(color) + 1), members), config);
}

// Few bytes are on their way at once where others are to go first: these wait behind them in queues
// that nobody here commands (the kernel's, the switch's). As many as keep the link busy.
uint64_t Communicator::credit_bytes() const {
  double bytes = 0;
  for (const schedule::Link& link : plans_->inputs().machine.links)
    if (link.us_per_byte > 0) bytes = std::max(bytes, 4 * link.latency_us / link.us_per_byte);
  return std::clamp(static_cast<uint64_t>(bytes), kLeastCredit, kMostCredit);
}

std::unique_ptr<Communicator> Communicator::make_virtual(int priority, Config config) {
  const Deadline deadline = Deadline::after_ms(config.init_timeout_ms);
  const std::string mine = fmt::format("'{}' of priority {}", config.name, priority);
  const auto all = control().exchange(circle_of(membership_, config_), "virtual", mine, deadline);
  const uint64_t serial = ++splits_;
  for (uint32_t peer = 0; peer < ranks(); peer++)
    if (all[peer] != all[0])
      fail(Code::invalid_usage,
           "communicator {}: rank 0 makes virtual communicator {}, {} makes {}: all ranks make the "
           "same ones in the same order",
           config_.name, all[0], member_text(peer), all[peer]);
  if (!membership_.traffic) {
    double latency_us = 0;
    for (const schedule::Link& link : plans_->inputs().machine.links)
      latency_us = std::max(latency_us, link.latency_us);
    membership_.traffic = std::make_shared<engine::Traffic>(
        kHold_ns + static_cast<int64_t>(8'000 * latency_us));
  }
  if (priority == 0) {
    if (config.window == 0) config.window = 2;
    const uint64_t sockets = uint64_t{config.window} * std::max(1u, ranks() - 1);  // at most
    config.socket_buffer_bytes = std::min(
        config.socket_buffer_bytes, std::max(credit_bytes() / sockets, kLeastSocketBuffer));
  }
  std::vector<uint32_t> members(ranks());
  std::iota(members.begin(), members.end(), 0);
  Membership same = child(hash_number(serial, kHashSeed), members);
  same.priority = priority;
  return std::make_unique<Communicator>(runtime_, std::move(same), std::move(config));
}

// Those who remain know all that they need: nobody is asked. They have called it with this list the
// same number of times; with other lists others than they may have.
std::unique_ptr<Communicator> Communicator::shrink(std::span<const uint32_t> excluded,
                                                   const Config& config) {
  uint64_t number = kHashSeed;
  std::vector<uint32_t> members;
  for (uint32_t peer = 0; peer < ranks(); peer++) {
    if (std::find(excluded.begin(), excluded.end(), peer) == excluded.end())
      members.push_back(peer);
    else
      number = hash_number(peer, number);
  }
  return std::make_unique<Communicator>(
      runtime_, child(hash_number(++shrinks_[number], number), members), config);
}

// Some of our ranks, in this order; `number` is the same on all of them, and differs from that of
// every other child.
Membership Communicator::child(uint64_t number, std::span<const uint32_t> chosen) const {
  Membership child = membership_;
  child.members.clear();
  child.id = hash_number(number, membership_.id) | 1;  // 0 means all communicators
  child.token[0] = hash_number(number, membership_.token[0]);
  child.token[1] = hash_number(number, membership_.token[1]);
  for (const uint32_t peer : chosen) {
    if (peer == rank()) child.rank = static_cast<uint32_t>(child.members.size());
    child.members.push_back(membership_.members[peer]);
  }
  return child;
}

Code Communicator::finalize() {
  Turn(*this).enter();  // behind all calls so far
  // A peer that left after our last operation took nothing from us.
  return failed_operations_ ? fault().code : Code::ok;
}

}  // namespace hcomm::comm
