// SPDX-License-Identifier: Apache-2.0
#include "schedule/samples.h"

#include <string_view>

#include "base/error.h"

namespace hcomm::schedule::samples {

void ring_all_reduce(Builder& b) {
  const uint32_t n = b.ranks(), r = b.rank();
  if (n == 1) return b.copy(b.output(), b.input());
  b.parts(n);
  const uint32_t next = (r + 1) % n, previous = (r + n - 1) % n;
  for (uint32_t s = 0; s + 1 < n; s++) {
    const uint32_t out = (r + n - s) % n, in = (r + n - s - 1) % n;
    b.send(next, s == 0 ? b.input_part(0, out) : b.output_part(0, out));
    const Slice tmp = b.scratch(b.output_part(0, in));
    b.recv(previous, tmp);
    b.reduce(b.output_part(0, in), tmp, b.input_part(0, in));
  }
  for (uint32_t s = 0; s + 1 < n; s++) {
    b.send(next, b.output_part(0, (r + 1 + n - s) % n));
    b.recv(previous, b.output_part(0, (r + n - s) % n));
  }
}

void direct_all_reduce(Builder& b) {
  std::vector<uint32_t> peers;
  std::vector<Slice> from(b.ranks(), b.input());
  for (uint32_t peer = 0; peer < b.ranks(); peer++)
    if (peer != b.rank()) peers.push_back(peer);
  b.send(peers, b.input());
  for (const uint32_t peer : peers) b.recv(peer, from[peer] = b.scratch(b.input()));
  if (b.ranks() == 1) return b.copy(b.output(), b.input());
  // In place the output is the own input, so the fold runs in scratch and ends in the output.
  Slice sum = from[0];
  for (uint32_t peer = 1; peer < b.ranks(); peer++) {
    const Slice to = peer + 1 == b.ranks() ? b.output() : b.scratch(b.output());
    b.reduce(to, sum, from[peer]);
    sum = to;
  }
}

void chain_broadcast(Builder& b) {
  const uint32_t n = b.ranks(), place = (b.rank() + n - b.root()) % n;
  if (place > 0) b.recv((b.rank() + n - 1) % n, b.output());
  if (place + 1 < n) b.send((b.rank() + 1) % n, place == 0 ? b.input() : b.output());
  if (place == 0) b.copy(b.output(), b.input());
}

void ring_all_gather(Builder& b) {
  const uint32_t n = b.ranks(), r = b.rank();
  b.copy(b.output(r), b.input());
  for (uint32_t s = 0; s + 1 < n; s++) {
    b.send((r + 1) % n, s == 0 ? b.input() : b.output((r + n - s) % n));
    b.recv((r + n - 1) % n, b.output((r + n - s - 1) % n));
  }
}

void pairwise_all_to_all(Builder& b) {
  const uint32_t n = b.ranks(), r = b.rank();
  b.copy(b.output(r), b.input(r));
  std::vector<Slice> what(n);
  for (uint32_t to = 0; to < n; to++) {
    what[to] = b.input(to);
    if (!b.shape().in_place || to == r) continue;  // else a receive would overwrite it
    b.copy(what[to] = b.scratch(b.input(to)), b.input(to));
  }
  for (uint32_t s = 1; s < n; s++) {
    b.send((r + s) % n, what[(r + s) % n]);
    b.recv((r + n - s) % n, b.output((r + n - s) % n));
  }
}

void linear_gather(Builder& b) {
  if (b.rank() != b.root()) return b.send(b.root(), b.input());
  b.copy(b.output(b.rank()), b.input());
  for (uint32_t peer = 0; peer < b.ranks(); peer++)
    if (peer != b.rank()) b.recv(peer, b.output(peer));
}

void dissemination_barrier(Builder& b) {
  const uint32_t n = b.ranks(), r = b.rank();
  Slice heard = b.token();
  for (uint32_t distance = 1; distance < n; distance *= 2) {
    const Slice news = b.token(), both = b.token();
    b.send((r + distance) % n, heard);
    b.recv((r + n - distance) % n, news);
    b.reduce(both, heard, news);  // what is told on is all that was heard, in every round
    heard = both;
  }
}

const std::vector<Sample>& all() {
  static const std::vector<Sample> kSamples = {
      {"ring_all_reduce", Collective::all_reduce, Order::any, ring_all_reduce},
      {"direct_all_reduce", Collective::all_reduce, Order::rank, direct_all_reduce},
      {"chain_broadcast", Collective::broadcast, Order::any, chain_broadcast},
      {"ring_all_gather", Collective::all_gather, Order::any, ring_all_gather},
      {"pairwise_all_to_all", Collective::all_to_all, Order::any, pairwise_all_to_all},
      {"linear_gather", Collective::gather, Order::any, linear_gather},
      {"dissemination_barrier", Collective::barrier, Order::any, dissemination_barrier},
  };
  return kSamples;
}

const Sample& named(const char* name) {
  for (const Sample& sample : all())
    if (std::string_view(sample.name) == name) return sample;
  fail(Code::invalid_argument, "no sample {}", name);
}

std::vector<Schedule> build_all(const Sample& sample, Shape shape) {
  std::vector<Schedule> schedules;
  shape.collective = sample.collective;
  for (shape.rank = 0; shape.rank < shape.ranks; shape.rank++) {
    Builder builder(shape);
    sample.build(builder);
    schedules.push_back(builder.finish(sample.name, sample.order));
  }
  return schedules;
}

std::vector<Schedule> build_all(const Sample& sample, uint32_t ranks) {
  return build_all(sample, Shape{.ranks = ranks});
}

}  // namespace hcomm::schedule::samples
