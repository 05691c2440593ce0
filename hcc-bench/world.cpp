// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "cli/terminal.h"

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

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number behind `key` in a file of "key: number kB" lines, in bytes; 0 when it is not there.
uint64_t kilobytes(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  return 0;
}

// What this process holds, memory that it shares counted by its share.
double resident_mib() {
  return static_cast<double>(kilobytes("/proc/self/smaps_rollup", "Pss")) / (1 << 20);
}

// What this process's control group (version 2) has left, UINT64_MAX: no limit.
uint64_t group_bytes() {
  std::string path = file_text("/proc/self/cgroup");  // "0::/user.slice/..."
  if (!path.starts_with("0::")) return UINT64_MAX;
  path = "/sys/fs/cgroup" + path.substr(3, path.find('\n') - 3);
  const std::string limit = file_text(path + "/memory.max");
  const std::string used = file_text(path + "/memory.current");
  if (limit.empty() || used.empty() || limit.starts_with("max")) return UINT64_MAX;
  const uint64_t most = std::stoull(limit), taken = std::stoull(used);
  return most > taken ? most - taken : 0;
}

}  // namespace

void require(hcommResult_t result, hcommComm_t comm, std::string_view what) {
  if (result == hcommSuccess) return;
  const std::string_view text = hcommGetLastError(comm);
  fail(code_of(result), "{}: {}", what, text.empty() ? hcommGetErrorString(result) : text);
}

int launched_rank() {
  for (const std::string_view name :
       {"HCOMM_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"})
    if (const std::string_view text = cli::environment_value(name); !text.empty())
      return number(text);
  return -1;
}

int launched_size(std::string& from) {
  for (const std::string_view name :
       {"HCOMM_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"})
    if (const std::string_view text = cli::environment_value(name); !text.empty()) {
      from = name;
      return std::max(0, number(text));
    }
  return 0;
}

World::World() {
  const double before_mib = resident_mib();
  const int64_t start_ns = now_ns();
  require(hcommCommInitWorld(&comm_, nullptr), nullptr, "join the communicator of the job");
  init_seconds_ = static_cast<double>(now_ns() - start_ns) * 1e-9;
  require(hcommCommUserRank(comm_, &rank_), comm_, "rank");
  require(hcommCommCount(comm_, &ranks_), comm_, "count");
  std::string from;
  const int launched = launched_size(from);
  if (launched > 1 && launched != ranks_)
    fail(Code::unavailable,
         "{} processes were started ({}), but the communicator has {} rank{}: they did not find "
         "one another; start them with hcc-launch -n {}",
         launched, from, ranks_, ranks_ == 1 ? "" : "s", launched);

  Member me{};
  gethostname(me.host, sizeof me.host - 1);
  me.pid = getpid();
  members_.resize(static_cast<size_t>(ranks_));
  require(hcommAllGather(&me, members_.data(), sizeof me, hcommUint8, comm_, nullptr), comm_,
          "all_gather of the host names");
  init_seconds_ = maximum(init_seconds_);
  memory_mib_ = maximum(std::max(0.0, resident_mib() - before_mib));
}

World::~World() {
  if (comm_ != nullptr) hcommCommDestroy(comm_);
}

void World::barrier() {
  require(hcommBarrier(comm_, nullptr), comm_, "barrier");
}

void World::maximum(std::span<double> values) {
  require(hcommAllReduce(values.data(), values.data(), values.size(), hcommFloat64, hcommMax, comm_,
                         nullptr),
          comm_, "all_reduce of the times");
}

double World::maximum(double value) {
  maximum({&value, 1});
  return value;
}

uint64_t World::sum(uint64_t value) {
  require(hcommAllReduce(&value, &value, 1, hcommUint64, hcommSum, comm_, nullptr), comm_,
          "all_reduce of the errors");
  return value;
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

uint64_t available_bytes() {
  return std::min(kilobytes("/proc/meminfo", "MemAvailable"), group_bytes());
}

}  // namespace hcomm::bench
