// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/choice/contender.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "algorithm/algorithm.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/rules.h"

namespace hcomm::choice {

namespace {

using bench::Operation;

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

std::string Forced::actions() const {
  if (algorithm.empty()) return {};
  std::string text = fmt::format("algorithm={}", algorithm);
  if (tile_bytes) text += ", tile=" + (*tile_bytes == 0 ? "whole" : size_text(*tile_bytes));
  if (window > 0) text += fmt::format(", window={}", window);
  return text;
}

bool Forced::runs(const std::string& plan) const {
  if (algorithm.empty()) return true;
  if (!tile_bytes) return plan.substr(0, plan.find(' ')) == algorithm;
  const bool whole = plan.find(" tile=") == std::string::npos;
  if (*tile_bytes == 0) return whole && plan.substr(0, plan.find(' ')) == algorithm;
  return (plan + " ")
      .starts_with(fmt::format("{} tile={} window={} ", algorithm, size_text(*tile_bytes), window));
}

Contender::Contender(bench::World& world, schedule::Collective collective, Forced forced)
    : forced_(std::move(forced)) {
  hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
  UniqueFd file;
  std::string path;
  const std::string actions = forced_.actions();
  if (!actions.empty()) {
    file = memory_file(
        fmt::format("[tuning]\ncollective={} -> {}\n", schedule::name(collective), actions));
    path = fmt::format("/proc/self/fd/{}", file.get());
    config.policy = path.c_str();
  }
  hcommComm_t made = nullptr;
  bench::require(hcommCommSplit(world.comm(), 0, world.rank(), &made, &config), world.comm(),
                 actions.empty() ? "split" : actions);
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

std::optional<schedule::Collective> collective_of(Operation operation) {
  std::string_view call = bench::info(operation).call;
  if (call.ends_with("_v")) call.remove_suffix(2);
  return policy::collective_named(call);
}

std::vector<Contender> contenders(bench::World& world, Operation operation) {
  std::vector<Contender> list;
  const std::optional<schedule::Collective> collective = collective_of(operation);
  HCOMM_CHECK(collective.has_value(), "{}", bench::info(operation).name);
  list.emplace_back(world, *collective, Forced{});
  for (const algorithm::Algorithm& each : algorithm::all())
    if (each.collective == *collective)
      list.emplace_back(world, *collective, Forced{.algorithm = std::string(each.name)});
  return list;
}

}  // namespace hcomm::choice
