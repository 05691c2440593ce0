// SPDX-License-Identifier: Apache-2.0
// hcomm.hpp: the C API with owners, types and exceptions; nothing else. A Communicator is a handle
// that destroys itself; a collective takes contiguous ranges (vectors, arrays, spans) and knows the
// element type; a result other than success is thrown as a Failure.
//
//     auto world = hcomm::Communicator::world();
//     world.all_reduce(gradients, sum);  // or in place: world.all_reduce(gradients)
//
// Absent: the V forms, registration and operators of one's own: call the C API with get().
#ifndef HCOMM_HPP
#define HCOMM_HPP

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "hcomm/hcomm.h"

namespace hcomm {

// A call that did not succeed, with the library's text: what was done, to whom, what was seen.
class Failure : public std::runtime_error {
 public:
  Failure(hcommResult_t result, const std::string& text)
      : std::runtime_error(text), result_(result) {}
  hcommResult_t result() const { return result_; }

 private:
  hcommResult_t result_;
};

inline void require(hcommResult_t result, hcommComm_t comm = nullptr) {
  if (result == hcommSuccess) return;
  const std::string text = hcommGetLastError(comm);
  throw Failure(result, text.empty() ? hcommGetErrorString(result) : text);
}

template <typename T>
constexpr hcommDataType_t natural_type() {
  if constexpr (std::is_same_v<T, float>) return hcommFloat32;
  if constexpr (std::is_same_v<T, double>) return hcommFloat64;
  if constexpr (std::is_same_v<T, std::byte>) return hcommUint8;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? hcommInt8 : hcommUint8;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? hcommInt32 : hcommUint32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? hcommInt64 : hcommUint64;
  }
  return hcommNumTypes;
}
// The element type of T; for a type of yours:
// template <> inline constexpr hcommDataType_t hcomm::type_of<Half> = hcommFloat16;
template <typename T>
inline constexpr hcommDataType_t type_of = natural_type<T>();

template <typename Range>
using ElementOf = std::remove_cv_t<std::ranges::range_value_t<Range>>;
// A contiguous range of elements that a collective can carry.
template <typename Range>
concept Elements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    type_of<ElementOf<Range>>
!= hcommNumTypes;
// The same, writable.
template <typename Range>
concept Output = Elements<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;
template <typename A, typename B>
concept Alike = std::is_same_v<ElementOf<A>, ElementOf<B>>;

namespace detail {
// A group with what `calls` does, left open; none when that throws.
template <typename Calls>
void open_group(Calls& calls) {
  require(hcommGroupStart());
  try {
    calls();
  } catch (...) {
    hcommGroupSimulateEnd();
    throw;
  }
}
}  // namespace detail

// Runs `calls` inside a group: sends and receives in any order, several communicators.
template <typename Calls>
void group(Calls&& calls) {
  detail::open_group(calls);
  require(hcommGroupEnd());
}

// What `calls` does, kept and started again and again; see hcommPlanCreate.
//
//     hcomm::Plan plan([&] { world.all_reduce(gradients); });
//     plan.start(); compute(); plan.wait();
class Plan {
 public:
  template <typename Calls>
  requires std::invocable<Calls&>
  explicit Plan(Calls&& calls) {
    detail::open_group(calls);
    require(hcommPlanCreate(&plan_));
  }
  Plan(Plan&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
  Plan& operator=(Plan&& other) noexcept {
    std::swap(plan_, other.plan_);
    return *this;
  }
  ~Plan() { hcommPlanDestroy(plan_); }

  void start() { require(hcommPlanStart(plan_)); }
  bool done() const {
    const hcommResult_t state = hcommPlanQuery(plan_);
    if (state != hcommInProgress) require(state);
    return state == hcommSuccess;
  }
  void wait() { require(hcommPlanWait(plan_)); }
  hcommPlan_t get() const { return plan_; }

 private:
  hcommPlan_t plan_ = nullptr;
};

// One rank's end of a communicator. Collectives return when the result is there, or with a stream
// as soon as they are queued. Throws Failure.
class Communicator {
 public:
  // The job that started this process; one rank without a launcher.
  static Communicator world(const hcommConfig_t* config = nullptr) {
    hcommComm_t comm = nullptr;
    require(hcommCommInitWorld(&comm, config));
    return Communicator(comm);
  }
  // Takes ownership: of what hcommCommInitRank or hcommCommInitAll made.
  explicit Communicator(hcommComm_t comm) : comm_(comm) {}
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~Communicator() {
    if (comm_ != nullptr) hcommCommDestroy(comm_);
  }

  // Collective. With color HCOMM_SPLIT_NOCOLOR the result is empty (false).
  Communicator split(int color, int key = 0) const {
    hcommComm_t part = nullptr;
    require(hcommCommSplit(comm_, color, key, &part, nullptr), comm_);
    return Communicator(part);
  }

  // Collective. The same ranks with an order and a priority of their own; see hcommCommVirtual.
  Communicator make_virtual(const char* name, const hcommConfig_t* config = nullptr) const {
    hcommComm_t same = nullptr;
    require(hcommCommVirtual(comm_, name, &same, config), comm_);
    return Communicator(same);
  }

  // Collective over those that stay; see hcommCommShrink.
  Communicator shrink(std::span<const int> exclude, int flags = HCOMM_SHRINK_DEFAULT) const {
    hcommComm_t left = nullptr;
    require(hcommCommShrink(comm_, exclude.data(), static_cast<int>(exclude.size()), &left, nullptr,
                            flags),
            comm_);
    return Communicator(left);
  }

  explicit operator bool() const { return comm_ != nullptr; }
  hcommComm_t get() const { return comm_; }
  int rank() const { return number(hcommCommUserRank); }
  int size() const { return number(hcommCommCount); }

  template <Elements In, Output Out>
  requires Alike<In, Out>
  void all_reduce(const In& in, Out&& out, hcommRedOp_t op = hcommSum, hcommStream_t stream = {}) {
    same(std::ranges::size(in), std::ranges::size(out), "all_reduce");
    run(hcommAllReduce(std::ranges::data(in), std::ranges::data(out), std::ranges::size(in),
                       type_of<ElementOf<In>>, op, comm_, stream));
  }
  template <Output Range>
  void all_reduce(Range&& data, hcommRedOp_t op = hcommSum, hcommStream_t stream = {}) {
    all_reduce(std::as_const(data), data, op, stream);
  }
  // in and out: `out` is written at root only, and may be empty elsewhere.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void reduce(const In& in, Out&& out, int root, hcommRedOp_t op = hcommSum,
              hcommStream_t stream = {}) {
    if (rank() == root) same(std::ranges::size(in), std::ranges::size(out), "reduce");
    run(hcommReduce(std::ranges::data(in), std::ranges::data(out), std::ranges::size(in),
                    type_of<ElementOf<In>>, op, root, comm_, stream));
  }
  template <Output Range>
  void broadcast(Range&& data, int root, hcommStream_t stream = {}) {
    run(hcommBroadcast(std::ranges::data(data), std::ranges::data(data), std::ranges::size(data),
                       type_of<ElementOf<Range>>, root, comm_, stream));
  }
  // out: size() times as many elements as in.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void all_gather(const In& in, Out&& out, hcommStream_t stream = {}) {
    same(std::ranges::size(in) * ranks(), std::ranges::size(out), "all_gather");
    run(hcommAllGather(std::ranges::data(in), std::ranges::data(out), std::ranges::size(in),
                       type_of<ElementOf<In>>, comm_, stream));
  }
  // in: size() times as many elements as out.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void reduce_scatter(const In& in, Out&& out, hcommRedOp_t op = hcommSum,
                      hcommStream_t stream = {}) {
    same(std::ranges::size(in), std::ranges::size(out) * ranks(), "reduce_scatter");
    run(hcommReduceScatter(std::ranges::data(in), std::ranges::data(out), std::ranges::size(out),
                           type_of<ElementOf<In>>, op, comm_, stream));
  }
  // in and out: size() blocks of equal length; block j of in goes to rank j.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void all_to_all(const In& in, Out&& out, hcommStream_t stream = {}) {
    same(std::ranges::size(in), std::ranges::size(out), "all_to_all");
    same(std::ranges::size(in) / ranks() * ranks(), std::ranges::size(in), "all_to_all");
    run(hcommAllToAll(std::ranges::data(in), std::ranges::data(out),
                      std::ranges::size(in) / ranks(), type_of<ElementOf<In>>, comm_, stream));
  }
  // out: at root size() times as many elements as in; may be empty elsewhere.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void gather(const In& in, Out&& out, int root, hcommStream_t stream = {}) {
    if (rank() == root) same(std::ranges::size(in) * ranks(), std::ranges::size(out), "gather");
    run(hcommGather(std::ranges::data(in), std::ranges::data(out), std::ranges::size(in),
                    type_of<ElementOf<In>>, root, comm_, stream));
  }
  // in: at root size() times as many elements as out; may be empty elsewhere.
  template <Elements In, Output Out>
  requires Alike<In, Out>
  void scatter(const In& in, Out&& out, int root, hcommStream_t stream = {}) {
    if (rank() == root) same(std::ranges::size(in), std::ranges::size(out) * ranks(), "scatter");
    run(hcommScatter(std::ranges::data(in), std::ranges::data(out), std::ranges::size(out),
                     type_of<ElementOf<In>>, root, comm_, stream));
  }
  void barrier(hcommStream_t stream = {}) { run(hcommBarrier(comm_, stream)); }

  template <Elements Range>
  void send(const Range& data, int peer, hcommStream_t stream = {}) {
    run(hcommSend(std::ranges::data(data), std::ranges::size(data), type_of<ElementOf<Range>>, peer,
                  comm_, stream));
  }
  template <Output Range>
  void receive(Range&& data, int peer, hcommStream_t stream = {}) {
    run(hcommRecv(std::ranges::data(data), std::ranges::size(data), type_of<ElementOf<Range>>, peer,
                  comm_, stream));
  }

 private:
  void run(hcommResult_t result) const { require(result, comm_); }
  size_t ranks() const { return static_cast<size_t>(size()); }
  int number(hcommResult_t (*query)(hcommComm_t, int*)) const {
    int value = 0;
    require(query(comm_, &value), comm_);
    return value;
  }
  static void same(size_t seen, size_t wanted, const std::string& what) {
    if (seen != wanted)
      throw Failure(hcommInvalidArgument, what + ": ranges do not fit: " + std::to_string(seen) +
                                              " and " + std::to_string(wanted) + " elements");
  }

  hcommComm_t comm_;
};

}  // namespace hcomm
#endif  // HCOMM_HPP
