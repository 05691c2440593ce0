// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/launcher.h"
#include "base/process.h"
#include "cli/terminal.h"
#include "hcc-bench/measure/memory.h"

namespace hcomm::bench {

namespace {

Code code_of(hcommResult_t result) {
  switch (result) {
    case hcommTimeout:
      return Code::timeout;
    case hcommRemoteError:
      return Code::peer_failed;
    case hcommAborted:
      return Code::aborted;
    case hcommUnsupported:
      return Code::unsupported;
    case hcommSystemError:
      return Code::system;
    default:
      return Code::internal;
  }
}

int number(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void require(hcommResult_t result, hcommComm_t comm, std::string_view what) {
  if (result == hcommSuccess) return;
  std::string_view text = hcommGetLastError(comm);
  if (text.empty()) text = hcommGetLastError(nullptr);  // of what is no communicator's
  fail(code_of(result), "{}: {}", what, text.empty() ? hcommGetErrorString(result) : text);
}

int launched_rank() {
  const Launcher* launcher = launcher_of(process_environment());
  return launcher == nullptr ? -1 : number(cli::environment_value(launcher->rank));
}

int launched_size(std::string& from) {
  // Of launchers that the library does not know: under them each process is a world of its own.
  static constexpr std::string_view kOthers[] = {"FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE",
                                                 "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE",
                                                 "SLURM_STEP_NUM_TASKS"};
  const Launcher* launcher = launcher_of(process_environment());
  const auto names = launcher == nullptr ? std::span<const std::string_view>(kOthers)
                                         : std::span<const std::string_view>(launcher->size);
  for (const std::string_view name : names)
    if (const std::string_view text = cli::environment_value(name); !text.empty()) {
      from = name;
      return std::max(0, number(text));
    }
  return 0;
}

World::World() {
  const double before_mib = resident_mib();
  const int64_t start_ns = now_ns();
  hcommComm_t joined = nullptr;
  require(hcommCommInitWorld(&joined, nullptr), nullptr, "join the communicator of the job");
  comm_.reset(joined);
  init_seconds_ = static_cast<double>(now_ns() - start_ns) * 1e-9;
  require(hcommCommUserRank(comm(), &rank_), comm(), "rank");
  require(hcommCommCount(comm(), &ranks_), comm(), "count");
  std::string from;
  const int launched = launched_size(from);
  if (launched > 1 && launched != ranks_)
    fail(Code::unavailable,
         "{} processes were started ({}), but the communicator has {} rank{}: they did not find "
         "one another; start them with hcc-launch -n {}",
         launched, from, ranks_, ranks_ == 1 ? "" : "s", launched);

  Member me{};
  host_name().copy(me.host, sizeof me.host - 1);
  members_.resize(static_cast<size_t>(ranks_));
  require(hcommAllGather(&me, members_.data(), sizeof me, hcommUint8, comm(), nullptr), comm(),
          "all_gather of the host names");
  init_seconds_ = maximum(init_seconds_);
  memory_mib_ = maximum(std::max(0.0, resident_mib() - before_mib));
}

void World::barrier() {
  require(hcommBarrier(comm(), nullptr), comm(), "barrier");
}

void World::maximum(std::span<double> values) {
  require(hcommAllReduce(values.data(), values.data(), values.size(), hcommFloat64, hcommMax,
                         comm(), nullptr),
          comm(), "all_reduce of the times");
}

double World::maximum(double value) {
  maximum({&value, 1});
  return value;
}

uint64_t World::sum(uint64_t value) {
  require(hcommAllReduce(&value, &value, 1, hcommUint64, hcommSum, comm(), nullptr), comm(),
          "all_reduce of the errors");
  return value;
}

void World::on_rank_0(const std::function<void()>& body) {
  std::exception_ptr failure;
  try {
    if (rank() == 0) body();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const bool failed = maximum(failure ? 1.0 : 0.0) != 0;
  if (failure) std::rethrow_exception(failure);
  if (failed) fail(Code::invalid_argument, "rank 0 cannot go on");
}

int World::local_ranks() const {
  const char* mine = members_[static_cast<size_t>(rank_)].host;
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const Member& each) {
    return std::strcmp(each.host, mine) == 0;
  }));
}

int World::hosts() const {
  std::map<std::string, int> count;
  for (const Member& member : members_) count[member.host]++;
  return static_cast<int>(count.size());
}

std::string World::hosts_text() const {
  std::vector<std::string> order;
  std::map<std::string, int> count;
  for (const Member& member : members_)
    if (count[member.host]++ == 0) order.emplace_back(member.host);
  std::string text;
  for (const std::string& host : order)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", host, count[host]);
  return text;
}

}  // namespace hcomm::bench
