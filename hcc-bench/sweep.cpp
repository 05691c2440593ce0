// SPDX-License-Identifier: Apache-2.0
#include "hcc-bench/sweep.h"

#include "base/error.h"

namespace hcomm::bench {

namespace {

std::vector<std::optional<Op>> redops_of(const Options& options, Operation operation, Type type) {
  if (!info(operation).reduces) return {std::nullopt};
  std::vector<std::optional<Op>> list;
  if (options.all_redops) {
    for (int i = 0; i < kOps; i++)
      if (allowed(static_cast<Op>(i), type)) list.emplace_back(static_cast<Op>(i));
    return list;
  }
  for (const Op op : options.redops) {
    if (!allowed(op, type) && options.types.size() == 1)
      fail(Code::invalid_argument, "{} is not for {}", name(op), name(type));
    if (allowed(op, type)) list.emplace_back(op);
  }
  return list;
}

std::vector<int> roots_of(const Options& options, Operation operation, int ranks) {
  if (!info(operation).rooted()) return {0};
  if (options.root != kRootAll) return {options.root};
  std::vector<int> list;
  for (int root = 0; root < ranks; root++) list.push_back(root);
  return list;
}

std::vector<bool> places_of(const Options& options, Operation operation) {
  if (!info(operation).in_place || options.in_place == "out") return {false};
  return options.in_place == "in" ? std::vector<bool>{true} : std::vector<bool>{false, true};
}

void add(const Options& options, Operation operation, int ranks, std::vector<Sweep>& list) {
  const bool sized = operation != Operation::barrier && operation != Operation::startup;
  const std::vector<Type> types = sized ? options.types : std::vector<Type>{Type::float32};
  const std::vector<size_t> sizes = sized ? options.sizes : std::vector<size_t>{0};
  for (const Type type : types)
    for (const auto redop : redops_of(options, operation, type))
      for (const int root : roots_of(options, operation, ranks))
        for (const bool in_place : places_of(options, operation))
          list.push_back({operation, type, redop, root, in_place, sizes});
}

}  // namespace

Series Sweep::series(int ranks) const {
  const OperationInfo& about = info(operation);
  const bool sized = operation != Operation::barrier && operation != Operation::startup;
  Series series;
  series.operation = about.name;
  series.ranks = ranks;
  if (sized) series.type = name(type);
  if (redop) series.redop = name(*redop);
  if (about.rooted()) series.root = root == kRootRotate ? "rotate" : std::to_string(root);
  if (about.in_place) series.place = in_place ? "in" : "out";
  return series;
}

std::vector<Sweep> sweeps(const Options& options, int ranks) {
  if (options.root >= ranks)
    fail(Code::invalid_argument, "--root {}: there are {} ranks", options.root, ranks);
  if (options.delay.rank >= ranks)
    fail(Code::invalid_argument, "--delay: there is no rank {}", options.delay.rank);
  std::vector<Sweep> list;
  for (const Operation operation : options.operations) {
    if (operation == Operation::ping_pong && ranks < 2) {
      if (options.operations.size() == 1)
        fail(Code::invalid_argument, "pingpong needs two ranks: hcc-launch -n 2 hcc-bench ...");
      continue;
    }
    add(options, operation, ranks, list);
  }
  return list;
}

}  // namespace hcomm::bench
