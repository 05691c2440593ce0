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

bool is_float8(Type type) { return size_of(type) == 1 && !is_integer(type); }

// The element that rank contributes, of either sign: sums of 8 ranks are exact in every type.
double value(const Exercise& e, int rank, size_t index) {
  const size_t mix = index * 7 + static_cast<size_t>(rank) * 3 + index / 5;
  if (e.op == Op::prod) return static_cast<double>(1 + mix % 2);
  if (e.op == Op::band || e.op == Op::bor || e.op == Op::bxor) return static_cast<double>(mix % 61);
  const int reach = is_float8(e.type) ? 1 : 10;
  const int number = static_cast<int>(mix % static_cast<size_t>(2 * reach + 1));
  return is_signed(e.type) ? number - reach : number;
}

// By what a rank's PreMulSum multiplies.
double factor_of(const Exercise& e, int rank) {
  if (rank % 2 == 1) return 1;
  return is_float8(e.type) ? -1 : 2;
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
  size_t gap, elements = 0;

  Side(std::vector<size_t> given, size_t after, bool reversed)
      : counts(std::move(given)), displs(counts.size()), gap(after) {
    for (size_t i = 0; i < counts.size(); i++) {
      const size_t block = reversed ? counts.size() - 1 - i : i;
      displs[block] = elements;
      elements += counts[block] + gap;
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
    auto op = static_cast<hcommRedOp_t>(e_.op);
    if (e_.op == Op::premul_sum) {
      unsigned char factor[8];
      store_value(e_.type, factor, factor_of(e_, self_.rank));
      self_.ok(hcommRedOpCreatePreMulSum(&op, factor, static_cast<hcommDataType_t>(e_.type),
                                         self_.comm), "operator");
    }
    const bool called = self_.ok(call(op), e_.text());
    if (e_.op == Op::premul_sum) self_.ok(hcommRedOpDestroy(op, self_.comm), "operator");
    if (!called) return;
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
        const bool equal = e_.in_place || e_.both_ways;
        counts[peer] = sum % 3 == 2 ? 0 : e_.count + sum % 4 + (equal ? 0 : from % 2);
      }
      return {counts, 2, e_.reversed};
    }
    const std::vector<size_t> all = counts_of(e_, self_.ranks, 0);
    if (blocks == 1 && (e_.collective == Collective::all_gather ||
                        e_.collective == Collective::reduce_scatter ||
                        e_.collective == Collective::gather ||
                        e_.collective == Collective::scatter))
      return {{all[static_cast<size_t>(rank)]}, 0, false};
    if (blocks <= 1) return {std::vector<size_t>(blocks, e_.count), 0, false};
    return {all, e_.varied ? size_t{2} : size_t{0}, e_.varied && e_.reversed};
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
    shared_ = send_ != in_memory_.data() + kCanary || recv_ != out_memory_.data() + kCanary;
    for (size_t block = 0; block < in_.counts.size(); block++)
      for (size_t i = 0; i < in_.counts[block]; i++)
        store_value(e_.type, send_ + (in_.displs[block] + i) * element_,
                    value(e_, self_.rank, salt(block) + i));
  }

  // What makes blocks differ.
  static size_t salt(size_t block) { return block * 11; }

  hcommResult_t call(hcommRedOp_t op) {
    const auto type = static_cast<hcommDataType_t>(e_.type);
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

  double contribution(int rank, size_t index) const {
    return value(e_, rank, index) * (e_.op == Op::premul_sum ? factor_of(e_, rank) : 1);
  }

  double reduced(size_t index) const {
    double result = contribution(0, index);
    for (int rank = 1; rank < self_.ranks; rank++) {
      const double next = contribution(rank, index);
      const auto a = static_cast<int64_t>(result), b = static_cast<int64_t>(next);
      switch (e_.op) {
        case Op::sum:
        case Op::premul_sum:
        case Op::avg: result += next; break;
        case Op::prod: result *= next; break;
        case Op::max: result = std::max(result, next); break;
        case Op::min: result = std::min(result, next); break;
        case Op::band: result = static_cast<double>(a & b); break;
        case Op::bor: result = static_cast<double>(a | b); break;
        case Op::bxor: result = static_cast<double>(a ^ b); break;
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
    for (const auto& [side, base] : {std::pair(&in_, send_), std::pair(&out_, recv_)})
      for (size_t block = 0; block < side->counts.size(); block++)
        for (size_t i = 0; i < side->gap * element_; i++)
          if (base[(side->displs[block] + side->counts[block]) * element_ + i] != kCanaryByte)
            return self_.findings->add(
                fmt::format("rank {}: {}: a gap was written", self_.rank, e_.text()));
    for (size_t block = 0; block < in_.counts.size(); block++) {
      // In place only the block of this rank becomes output, if not all of them do.
      if (shared_ && (out_.counts.size() != 1 || in_.counts.size() == 1 ||
                      block == static_cast<size_t>(self_.rank)))
        continue;
      for (size_t i = 0; i < in_.counts[block]; i++) {
        unsigned char want[8];
        store_value(e_.type, want, value(e_, self_.rank, salt(block) + i));
        if (std::memcmp(want, send_ + (in_.displs[block] + i) * element_, element_) != 0)
          return self_.findings->add(
              fmt::format("rank {}: {}: the input was written", self_.rank, e_.text()));
      }
    }
  }

  const Rank& self_;
  const Exercise& e_;
  const size_t element_;
  const Shape shape_;
  const Side in_, out_;
  std::vector<unsigned char> in_memory_, out_memory_;
  unsigned char *send_ = nullptr, *recv_ = nullptr;
  bool shared_ = false;  // send_ and recv_ lie in one memory
};

}  // namespace

std::string Exercise::text() const {
  return fmt::format("{}{}{} {} {} count={} root={}", schedule::name(collective),
                     varied ? "_v" : "", in_place ? " in place" : "", name(type), name(op), count,
                     root);
}

bool has_varied(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter ||
         collective == Collective::all_to_all || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::string rules_for(const algorithm::Algorithm& algorithm, const std::string& more) {
  std::string name(schedule::name(algorithm.collective));
  std::erase(name, '_');
  return fmt::format("[tuning]\ncollective={} -> algorithm={}{}{}\n", name, algorithm.name,
                     more.empty() ? "" : ", ", more);
}

void perform(const Rank& self, const Exercise& exercise, std::string* output) {
  Call(self, exercise).run(output);
}

}  // namespace hcomm::test
