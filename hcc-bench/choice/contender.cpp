// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/contender.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "algorithm/algorithm.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/rules.h"

namespace hcomm::choice {

namespace {

using bench::Operation;

// The collective that an operation is, its V form included.
std::optional<schedule::Collective> collective_of(Operation operation) {
  std::string_view call = bench::info(operation).call;
  if (call.ends_with("_v")) call.remove_suffix(2);
  return policy::collective_named(call);
}

// A file without a name, of this process alone: each rank has its own, and only its text is
// compared.
UniqueFd memory_file(const std::string& text) {
  UniqueFd file(memfd_create("hcc-bench-policy", MFD_CLOEXEC));
  if (!file) fail_system(errno, "memory for a policy file");
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) fail_system(errno, "write a policy file");
  return file;
}

}  // namespace

Contender::Contender(bench::World& world, std::string algorithm, const std::string& rule)
    : algorithm_(std::move(algorithm)) {
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  UniqueFd file;
  std::string path;
  if (!rule.empty()) {
    file = memory_file(fmt::format("[tuning]\n{}\n", rule));
    path = fmt::format("/proc/self/fd/{}", file.get());
    config.policy = path.c_str();
  }
  hcommComm_t made = nullptr;
  bench::require(hcommCommSplit(world.comm(), 0, world.rank(), &made, &config), world.comm(),
                 rule.empty() ? "split" : rule);
  comm_.reset(made);
}

std::string Contender::plan(const bench::Sweep& sweep, size_t count) const {
  char text[256] = {};
  const std::string call(bench::info(sweep.operation).call);
  bench::require(hcommCommExplain(comm(), call.c_str(), count,
                                  static_cast<hcommDataType_t>(sweep.type), text, sizeof text),
                 comm(), "explain");
  return text;
}

bool Contender::runs_its_own(const std::string& plan) const {
  return algorithm_.empty() || plan.substr(0, plan.find(' ')) == algorithm_;
}

bool has_algorithms(Operation operation) {
  return collective_of(operation).has_value();
}

std::vector<Contender> contenders(bench::World& world, Operation operation) {
  std::vector<Contender> list;
  const std::optional<schedule::Collective> collective = collective_of(operation);
  HCOMM_CHECK(collective.has_value(), "{}", bench::info(operation).name);
  list.emplace_back(world, "", "");
  for (const algorithm::Algorithm& each : algorithm::all())
    if (each.collective == *collective)
      list.emplace_back(
          world, std::string(each.name),
          fmt::format("collective={} -> algorithm={}", schedule::name(*collective), each.name));
  return list;
}

}  // namespace hcomm::choice
