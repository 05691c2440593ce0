// SPDX-License-Identifier: Apache-2.0
#include "comm/join.h"

#include <cstring>
#include <numeric>

#include "base/bytes.h"
#include "comm/control/hub.h"
#include "comm/control/job.h"
#include "hcomm/hcomm.h"

namespace hcomm::comm {

namespace {

// What all ranks must have equal, beside what agree_on_choice compares. Of a long name its end is
// compared by a hash.
std::string settings_of(const Config& config) {
  constexpr size_t kShown = 200;
  std::string name = config.name;
  if (name.size() > kShown)
    name = fmt::format("{}...{:016x}", name.substr(0, kShown), hash_bytes(name));
  return fmt::format("HCOMM_NAME={} HCOMM_ALGO={} HCOMM_TILE={} HCOMM_WINDOW={} "
                     "HCOMM_DETERMINISTIC={}",
                     name, config.algorithm, config.tile_bytes, config.window,
                     config.deterministic ? "on" : "off");
}

// Numbers that only the members of this job can know: they prove that a data connection belongs to
// it. The nonce itself never leaves the process.
uint64_t number_of(const Nonce& nonce, std::string_view purpose) {
  const Mac digest = mac(nonce, purpose);
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number | 1;
}

Membership membership_of(const Nonce& nonce, std::unique_ptr<Control> control) {
  Membership membership;
  // A job may make one world after the other: same nonce, another number.
  const std::string world = fmt::format(" of world {}", control->world());
  membership.id = number_of(nonce, "communicator" + world);
  membership.token[0] = number_of(nonce, "token 0" + world);
  membership.token[1] = number_of(nonce, "token 1" + world);
  membership.rank = control->rank();
  membership.members.resize(control->ranks());
  std::iota(membership.members.begin(), membership.members.end(), 0u);
  membership.line = std::make_shared<Line>(std::move(control));
  return membership;
}

std::unique_ptr<Communicator> join(Runtime& runtime, const Root& root, uint32_t rank,
                                   uint32_t ranks, const Config& config) {
  std::shared_ptr<trace::Recorder> recorder = runtime.recorder(rank, ranks);
  Membership membership = membership_of(
      root.nonce, Control::join(runtime.service(),
                                {.root = root, .rank = rank, .ranks = ranks,
                                 .deadline = Deadline::after_ms(config.init_timeout_ms),
                                 .library_version = HCOMM_VERSION_CODE,
                                 .settings = settings_of(config)}));
  membership.recorder = recorder;
  auto made = std::make_unique<Communicator>(runtime, std::move(membership), config);
  recorder->area().state.store(trace::RankState::ready, std::memory_order_release);
  return made;
}

}  // namespace

UniqueId new_id(Runtime& runtime) {
  auto hub = Hub::listen(runtime.service(), runtime.config());
  const UniqueId id = hub->id();
  runtime.keep(std::move(hub));
  return id;
}

std::unique_ptr<Communicator> join_by_id(Runtime& runtime, const UniqueId& id, uint32_t rank,
                                         uint32_t ranks, const Config& config) {
  return join(runtime, decode_id(id), rank, ranks, config);
}

std::unique_ptr<Communicator> join_world(Runtime& runtime, const Config& config) {
  const Job job = find_job(config, process_environment());
  // From here on the launcher sees that this rank has begun to join.
  runtime.recorder(static_cast<uint32_t>(job.rank), static_cast<uint32_t>(job.size));
  const Root root = runtime.meet(job, Deadline::after_ms(config.init_timeout_ms));
  return join(runtime, root, static_cast<uint32_t>(job.rank), static_cast<uint32_t>(job.size),
              config);
}

}  // namespace hcomm::comm
