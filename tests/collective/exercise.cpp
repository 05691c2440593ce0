// SPDX-License-Identifier: Apache-2.0
#include "collective/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "datatype/kernels.h"

namespace hcomm::test {

using schedule::blocks_of;
using schedule::Collective;
using schedule::kInput;
using schedule::kOutput;
using schedule::Shape;

namespace {

constexpr size_t kCanary = 64;
constexpr unsigned char kCanaryByte = 0xa5;

// The element that rank contributes: small, so that sums of 8 ranks are exact in float8.
double value(const Exercise& e, int rank, size_t index) {
  const size_t mix = index * 7 + static_cast<size_t>(rank) * 3 + index / 5;
  if (e.op == Op::prod) return static_cast<double>(1 + mix % 2);
  if (e.op == Op::band || e.op == Op::bor || e.op == Op::bxor) return static_cast<double>(mix % 61);
  return static_cast<double>(mix % 2);
}

// Lengths of blocks: of rank's, as all see them; some are zero.
std::vector<size_t> counts_of(const Exercise& e, int ranks, int salt) {
  std::vector<size_t> counts(static_cast<size_t>(ranks), e.count);
  if (e.varied)
    for (size_t i = 0; i < counts.size(); i++)
      counts[i] = (i + static_cast<size_t>(salt)) % 3 == 2 ? 0 : e.count + i % 4;
  return counts;
}

// The buffers of one rank: input and output with gaps between blocks and canaries around.
struct Side {
  std::vector<size_t> counts, displs;
  size_t elements = 0;

  Side(std::vector<size_t> given, size_t gap) : counts(std::move(given)) {
    for (const size_t count : counts) {
      displs.push_back(elements);
      elements += count + gap;
    }
  }
};

class Call {
 public:
  Call(const Rank& self, const Exercise& e)
      : self_(self), e_(e), element_(size_of(e.type)),
        shape_{.collective = e.collective, .varied = e.varied, .in_place = e.in_place,
               .ranks = static_cast<uint32_t>(self.ranks),
               .rank = static_cast<uint32_t>(self.rank), .root = static_cast<uint32_t>(e.root)},
        in_(side(kInput)), out_(side(kOutput)) {
    place();
  }

  void run(std::string* output) {
    if (!self_.ok(call(), e_.text())) return;
    verify();
    if (output != nullptr)
      for (size_t block = 0; block < out_.counts.size(); block++)
        output->append(reinterpret_cast<const char*>(recv_ + out_.displs[block] * element_),
                       out_.counts[block] * element_);
  }

 private:
  Side side(uint16_t buffer) const {
    const uint32_t blocks = blocks_of(shape_, buffer);
    const int rank = self_.rank;
    if (e_.collective == Collective::all_to_all && e_.varied) {
      // counts[peer] of the pair (rank, peer), the same seen from both ends when in place
      std::vector<size_t> counts(blocks);
      for (size_t peer = 0; peer < blocks; peer++) {
        const size_t sum = static_cast<size_t>(rank) + peer;
        const size_t from = buffer == kInput ? static_cast<size_t>(rank) : peer;
        counts[peer] = sum % 3 == 2 ? 0 : e_.count + sum % 4 + (e_.in_place ? 0 : from % 2);
      }
      return {counts, 2};
    }
    const std::vector<size_t> all = counts_of(e_, self_.ranks, 0);
    if (blocks == 1 && (e_.collective == Collective::all_gather ||
                        e_.collective == Collective::reduce_scatter ||
                        e_.collective == Collective::gather ||
                        e_.collective == Collective::scatter))
      return {{all[static_cast<size_t>(rank)]}, 0};
    if (blocks <= 1) return {std::vector<size_t>(blocks, e_.count), 0};
    return {all, e_.varied ? size_t{2} : size_t{0}};
  }

  // Allocates, fills the input, and lets the two share memory where the rule of the call says so.
  void place() {
    in_memory_.assign(in_.elements * element_ + 2 * kCanary, kCanaryByte);
    out_memory_.assign(out_.elements * element_ + 2 * kCanary, kCanaryByte);
    send_ = in_memory_.data() + kCanary;
    recv_ = out_memory_.data() + kCanary;
    if (e_.in_place) {
      const auto rank = static_cast<size_t>(self_.rank);
      const bool at_root = self_.rank == e_.root;
      switch (e_.collective) {
        case Collective::all_reduce:
        case Collective::all_to_all: send_ = recv_; break;
        case Collective::reduce:
        case Collective::broadcast:
          if (at_root) send_ = recv_;
          break;
        case Collective::all_gather: send_ = recv_ + out_.displs[rank] * element_; break;
        case Collective::gather:
          if (at_root) send_ = recv_ + out_.displs[rank] * element_;
          break;
        case Collective::reduce_scatter: recv_ = send_ + in_.displs[rank] * element_; break;
        case Collective::scatter:
          if (at_root) recv_ = send_ + in_.displs[rank] * element_;
          break;
        default: break;
      }
    }
    for (size_t block = 0; block < in_.counts.size(); block++)
      for (size_t i = 0; i < in_.counts[block]; i++)
        store_value(e_.type, send_ + (in_.displs[block] + i) * element_,
                    value(e_, self_.rank, salt(block) + i));
  }

  // What makes blocks differ.
  static size_t salt(size_t block) { return block * 11; }

  hcommResult_t call() {
    const auto type = static_cast<hcommDataType_t>(e_.type);
    const auto op = static_cast<hcommRedOp_t>(e_.op);
    hcommComm_t comm = self_.comm;
    const size_t own_in = in_.counts.empty() ? 0 : in_.counts[0];
    const size_t own_out = out_.counts.empty() ? 0 : out_.counts[0];
    switch (e_.collective) {
      case Collective::all_reduce:
        return hcommAllReduce(send_, recv_, e_.count, type, op, comm, nullptr);
      case Collective::reduce:
        return hcommReduce(send_, recv_, e_.count, type, op, e_.root, comm, nullptr);
      case Collective::broadcast:
        return hcommBroadcast(send_, recv_, e_.count, type, e_.root, comm, nullptr);
      case Collective::all_gather:
        if (e_.varied)
          return hcommAllGatherV(send_, recv_, out_.counts.data(), out_.displs.data(), type, comm,
                                 nullptr);
        return hcommAllGather(send_, recv_, e_.count, type, comm, nullptr);
      case Collective::reduce_scatter:
        if (e_.varied)
          return hcommReduceScatterV(send_, recv_, in_.counts.data(), in_.displs.data(), type, op,
                                     comm, nullptr);
        return hcommReduceScatter(send_, recv_, e_.count, type, op, comm, nullptr);
      case Collective::all_to_all:
        if (e_.varied)
          return hcommAllToAllV(send_, in_.counts.data(), in_.displs.data(), recv_,
                                out_.counts.data(), out_.displs.data(), type, comm, nullptr);
        return hcommAllToAll(send_, recv_, e_.count, type, comm, nullptr);
      case Collective::gather:
        if (e_.varied)
          return hcommGatherV(send_, own_in, recv_, out_.counts.data(), out_.displs.data(), type,
                              e_.root, comm, nullptr);
        return hcommGather(send_, recv_, e_.count, type, e_.root, comm, nullptr);
      case Collective::scatter:
        if (e_.varied)
          return hcommScatterV(send_, in_.counts.data(), in_.displs.data(), recv_, own_out, type,
                               e_.root, comm, nullptr);
        return hcommScatter(send_, recv_, e_.count, type, e_.root, comm, nullptr);
      case Collective::barrier: return hcommBarrier(comm, nullptr);
      case Collective::point_to_point: break;
    }
    return hcommInvalidArgument;
  }

  double reduced(size_t index) const {
    double result = value(e_, 0, index);
    for (int rank = 1; rank < self_.ranks; rank++) {
      const double next = value(e_, rank, index);
      const auto a = static_cast<uint64_t>(result), b = static_cast<uint64_t>(next);
      switch (e_.op) {
        case Op::sum:
        case Op::avg: result += next; break;
        case Op::prod: result *= next; break;
        case Op::max: result = std::max(result, next); break;
        case Op::min: result = std::min(result, next); break;
        case Op::band: result = static_cast<double>(a & b); break;
        case Op::bor: result = static_cast<double>(a | b); break;
        case Op::bxor: result = static_cast<double>(a ^ b); break;
        case Op::premul_sum: break;
      }
    }
    if (e_.op != Op::avg) return result;
    return is_integer(e_.type) ? std::trunc(result / self_.ranks) : result / self_.ranks;
  }

  double expected(size_t block, size_t i) const {
    const int peer = static_cast<int>(block);
    const auto rank = static_cast<size_t>(self_.rank);
    switch (e_.collective) {
      case Collective::all_reduce:
      case Collective::reduce: return reduced(i);
      case Collective::broadcast: return value(e_, e_.root, i);
      case Collective::all_gather:
      case Collective::gather: return value(e_, peer, i);
      case Collective::reduce_scatter: return reduced(salt(rank) + i);
      case Collective::all_to_all: return value(e_, peer, salt(rank) + i);
      case Collective::scatter: return value(e_, e_.root, salt(rank) + i);
      default: return 0;
    }
  }

  void verify() {
    unsigned char want[8];
    for (size_t block = 0; block < out_.counts.size(); block++)
      for (size_t i = 0; i < out_.counts[block]; i++) {
        const unsigned char* seen = recv_ + (out_.displs[block] + i) * element_;
        store_value(e_.type, want, expected(block, i));
        if (std::memcmp(want, seen, element_) == 0) continue;
        return self_.findings->add(fmt::format(
            "rank {}: {}: block {} element {}: expected {}, got {}", self_.rank, e_.text(), block,
            i, load_value(e_.type, want), load_value(e_.type, seen)));
      }
    verify_untouched();
  }

  void verify_untouched() {
    for (const auto* memory : {&in_memory_, &out_memory_})
      for (size_t i = 0; i < kCanary; i++)
        if ((*memory)[i] != kCanaryByte || (*memory)[memory->size() - 1 - i] != kCanaryByte)
          return self_.findings->add(
              fmt::format("rank {}: {}: bytes around a buffer were written", self_.rank,
                          e_.text()));
    for (size_t block = 0; block < out_.counts.size(); block++) {
      const size_t from = (out_.displs[block] + out_.counts[block]) * element_;
      const size_t to = block + 1 < out_.counts.size() ? out_.displs[block + 1] * element_
                                                       : out_.elements * element_;
      if (e_.in_place) continue;  // the other side's data may lie there
      for (size_t i = from; i < to; i++)
        if (recv_[i] != kCanaryByte)
          return self_.findings->add(
              fmt::format("rank {}: {}: a gap was written", self_.rank, e_.text()));
    }
    for (size_t block = 0; block < in_.counts.size() && !e_.in_place; block++)
      for (size_t i = 0; i < in_.counts[block]; i++) {
        unsigned char want[8];
        store_value(e_.type, want, value(e_, self_.rank, salt(block) + i));
        if (std::memcmp(want, send_ + (in_.displs[block] + i) * element_, element_) != 0)
          return self_.findings->add(
              fmt::format("rank {}: {}: the input was written", self_.rank, e_.text()));
      }
  }

  const Rank& self_;
  const Exercise& e_;
  const size_t element_;
  const Shape shape_;
  const Side in_, out_;
  std::vector<unsigned char> in_memory_, out_memory_;
  unsigned char *send_ = nullptr, *recv_ = nullptr;
};

}  // namespace

std::string Exercise::text() const {
  return fmt::format("{}{}{} {} {} count={} root={}", schedule::name(collective),
                     varied ? "_v" : "", in_place ? " in place" : "", name(type), name(op), count,
                     root);
}

void perform(const Rank& self, const Exercise& exercise, std::string* output) {
  Call(self, exercise).run(output);
}

}  // namespace hcomm::test
