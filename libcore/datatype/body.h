// SPDX-License-Identifier: Apache-2.0
// The kernels: operators, the walk over memory, and the table. One source for every instruction
// set, included by kernels_<set>.cpp (see lanes.h), so the same bits come from all of them: the
// order of operations is written here and the compiler may not change it (-ffp-contract=off, no
// -ffast-math). Absent: the layout of formats (codecs.h), dispatch (kernels.cpp).
#pragma once

#include "datatype/codecs.h"
#include "datatype/divider.h"
#include "datatype/table.h"

namespace hcomm {
namespace {

// Operators on decoded vectors.

struct Sum {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a + b;
  }
};
struct Product {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a * b;
  }
};
struct Quotient {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a / b;
  }
};
struct And {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a & b;
  }
};
struct Or {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a | b;
  }
};
struct Xor {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    return a ^ b;
  }
};

template <typename V>
constexpr bool kFloating = std::is_floating_point_v<std::remove_cvref_t<decltype(V{}[0])>>;

// Floats that compare equal differ in bits only as -0 and +0 do, so `and` gives +0 and `or` -0. The
// comparison gives b where either is NaN; a NaN in a is put back.
struct Max {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    V larger = a > b ? a : b;
    if constexpr (kFloating<V>) {
      larger = a == b ? (V)(as<uint64_t>(a) & as<uint64_t>(b)) : larger;
      larger = a == a ? larger : a;
    }
    return larger;
  }
};
struct Min {
  template <typename V>
  HCOMM_INLINE static V of(V a, V b) {
    V smaller = a < b ? a : b;
    if constexpr (kFloating<V>) {
      smaller = a == b ? (V)(as<uint64_t>(a) | as<uint64_t>(b)) : smaller;
      smaller = a == a ? smaller : a;
    }
    return smaller;
  }
};

template <typename Operator, typename Decoded>
HCOMM_INLINE Decoded apply(const Decoded& a, const Decoded& b) {
  Decoded result;
  for (size_t part = 0; part < Decoded::kCount; part++)
    result.v[part] = Operator::of(a.v[part], b.v[part]);
  return result;
}

// Where a kernel's vectors come from: whole ones, or the last few bytes of a short call.

struct Whole {
  HCOMM_INLINE Raw operator()(const char* from) const { return load(from); }
};
struct Part {
  size_t bytes;
  HCOMM_INLINE Raw operator()(const char* from) const { return load_part(from, bytes); }
};

// Kernels: the result at `at` bytes into the buffers, for kGroup vectors at once.

template <size_t N>
using Group = Raw[N];

template <typename Codec, typename Operator>
struct TwoInputs {
  using CodecType = Codec;
  static constexpr size_t kGroup = 2;
  const char *a, *b;

  template <typename Load, size_t N>
  HCOMM_INLINE void make(Group<N>& results, size_t at, Load load) const {
    for (size_t i = 0; i < N; i++) {
      const size_t here = at + i * kVectorBytes;
      results[i] = Codec::encode(
          apply<Operator>(Codec::decode(load(a + here)), Codec::decode(load(b + here))));
    }
  }
};

// The group is as many vectors as keep the accumulators in registers.
template <typename Codec, typename Operator>
struct ManyInputs {
  using CodecType = Codec;
  static constexpr size_t kGroup = 4 / Codec::Decoded::kCount;
  template <size_t N>
  using Sums = typename Codec::Decoded[N];
  const void* const* inputs;
  size_t input_count;

  template <typename Load, size_t N>
  HCOMM_INLINE void make(Group<N>& results, size_t at, Load load) const {
    Sums<N> sums;
    begin(sums, at, load);
    add(sums, 1, input_count, at, load);
    for (size_t i = 0; i < N; i++) results[i] = Codec::encode(sums[i]);
  }

  template <typename Load, size_t N>
  HCOMM_INLINE void begin(Sums<N>& sums, size_t at, Load load) const {
    for (size_t i = 0; i < N; i++) sums[i] = Codec::decode(load(place(0, at, i)));
  }

  template <typename Load, size_t N>
  HCOMM_INLINE void add(Sums<N>& sums, size_t first, size_t end, size_t at, Load load) const {
    for (size_t input = first; input < end; input++)
      for (size_t i = 0; i < N; i++)
        sums[i] = apply<Operator>(sums[i], Codec::decode(load(place(input, at, i))));
  }

 private:
  HCOMM_INLINE const char* place(size_t input, size_t at, size_t i) const {
    return static_cast<const char*>(inputs[input]) + at + i * kVectorBytes;
  }
};

// One input and the same operand for all elements.
template <typename Codec, typename Operator>
struct WithConstant {
  using CodecType = Codec;
  static constexpr size_t kGroup = 1;
  const char* from;
  typename Codec::Decoded constant;

  template <typename Load, size_t N>
  HCOMM_INLINE void make(Group<N>& results, size_t at, Load load) const {
    for (size_t i = 0; i < N; i++)
      results[i] = Codec::encode(
          apply<Operator>(Codec::decode(load(from + at + i * kVectorBytes)), constant));
  }
};

struct CopyOf {
  using CodecType = IntegerCodec<uint8_t>;
  static constexpr size_t kGroup = 4;
  const char* from;

  template <typename Load, size_t N>
  HCOMM_INLINE void make(Group<N>& results, size_t at, Load load) const {
    for (size_t i = 0; i < N; i++) results[i] = load(from + at + i * kVectorBytes);
  }
};

// The walk over memory, in bytes: [at, end) of the buffers.

template <typename Kernel>
[[gnu::noinline]] Raw make_one(Kernel kernel, size_t at) {
  Raw result[1];
  kernel.make(result, at, Whole{});
  return result[0];
}

template <typename Kernel>
[[gnu::noinline]] void run_part(Kernel kernel, char* to, size_t at, size_t bytes) {
  Raw result[1];
  kernel.make(result, at, Part{bytes});
  store_part(to + at, result[0], bytes);
}

// What is left over after whole vectors is the end of one last vector that overlaps the one before;
// it is made first, since the walk may overwrite its inputs.
template <typename Kernel>
void run_cached(Kernel kernel, char* to, size_t at, size_t end) {
  if (end - at < kVectorBytes) {
    if (end > at) run_part(kernel, to, at, end - at);
    return;
  }
  constexpr size_t kGroupBytes = Kernel::kGroup * kVectorBytes;
  const Raw last = make_one(kernel, end - kVectorBytes);
  for (; end - at >= kGroupBytes; at += kGroupBytes) {
    Group<Kernel::kGroup> results;
    kernel.make(results, at, Whole{});
    for (size_t i = 0; i < Kernel::kGroup; i++) store(to + at + i * kVectorBytes, results[i]);
  }
  if constexpr (Kernel::kGroup > 1)
    for (; end - at > kVectorBytes; at += kVectorBytes) store(to + at, make_one(kernel, at));
  store(to + end - kVectorBytes, last);
}

// Streams whole cache lines; what comes before and after them, and outputs whose elements straddle
// lines, are stored as usual.
template <typename Kernel>
[[gnu::noinline]] void run_streaming(Kernel kernel, char* to, size_t end) {
  constexpr size_t kLine = 64, kVectors = kLine / kVectorBytes;
  const size_t head = (0 - reinterpret_cast<uintptr_t>(to)) % kLine;
  if (head % Kernel::CodecType::kElementBytes != 0 || end < head + kLine) {
    run_cached(kernel, to, 0, end);
    return;
  }
  run_cached(kernel, to, 0, head);
  size_t at = head;
  for (; end - at >= kLine; at += kLine) {
    Group<kVectors> results;
    kernel.make(results, at, Whole{});
    for (size_t i = 0; i < kVectors; i++) stream(to + at + i * kVectorBytes, results[i]);
  }
  fence_streams();
  run_cached(kernel, to, at, end);
}

// Inputs that are read side by side: more than caches have ways evict one another where their
// addresses are alike, as those of large buffers are.
constexpr size_t kStreams = 8;

// Sums of `groups` groups from `at` on, kStreams inputs at a time.
template <typename Kernel, typename Sums>
HCOMM_INLINE void sum_block(const Kernel& kernel, Sums* sums, size_t groups, size_t at) {
  for (size_t first = 0; first < kernel.input_count; first += kStreams) {
    const size_t left = kernel.input_count - first;
    const size_t end = first + (left < kStreams ? left : kStreams);
    for (size_t group = 0; group < groups; group++) {
      const size_t here = at + group * Kernel::kGroup * kVectorBytes;
      if (first == 0) kernel.begin(sums[group], here, Whole{});
      kernel.add(sums[group], first == 0 ? 1 : first, end, here, Whole{});
    }
  }
}

// More inputs than kStreams, in blocks whose sums stay in the nearest cache, unrounded.
template <typename Kernel>
[[gnu::noinline]] void run_blocks(Kernel kernel, char* to, size_t end, Store store) {
  using Codec = typename Kernel::CodecType;
  constexpr size_t kGroupBytes = Kernel::kGroup * kVectorBytes, kGroups = 32;
  typename Kernel::template Sums<Kernel::kGroup> sums[kGroups];
  const bool streams =
      store == Store::streaming && reinterpret_cast<uintptr_t>(to) % kVectorBytes == 0;
  size_t at = 0;
  while (end - at >= kGroupBytes) {
    const size_t left = (end - at) / kGroupBytes;
    const size_t groups = left < kGroups ? left : kGroups;
    sum_block(kernel, sums, groups, at);
    for (size_t group = 0; group < groups; group++) {
      for (size_t i = 0; i < Kernel::kGroup; i++, at += kVectorBytes) {
        const Raw result = Codec::encode(sums[group][i]);
        if (streams)
          stream(to + at, result);
        else
          hcomm::store(to + at, result);
      }
    }
  }
  if (streams) fence_streams();
  run_cached(kernel, to, at, end);
}

template <typename Kernel>
HCOMM_INLINE void run(Kernel kernel, void* to, size_t bytes, Store store) {
  if (store == Store::streaming)
    run_streaming(kernel, static_cast<char*>(to), bytes);
  else
    run_cached(kernel, static_cast<char*>(to), 0, bytes);
}

// What the table points to. Where elements of several sizes share a codec, theirs is given.

template <typename Codec, typename Operator, size_t kElementBytes = Codec::kElementBytes>
void fold_two(void* to, const void* a, const void* b, size_t count, Store store) {
  run(TwoInputs<Codec, Operator>{static_cast<const char*>(a), static_cast<const char*>(b)}, to,
      count * kElementBytes, store);
}

template <typename Codec, typename Operator, size_t kElementBytes = Codec::kElementBytes>
void fold_many(void* to, const void* const* inputs, size_t input_count, size_t count, Store store) {
  const ManyInputs<Codec, Operator> kernel{inputs, input_count};
  if (input_count > kStreams)
    run_blocks(kernel, static_cast<char*>(to), count * kElementBytes, store);
  else
    run(kernel, to, count * kElementBytes, store);
}

template <typename Codec>
void divide_floats(void* to, const void* from, size_t count, unsigned divisor) {
  using Computed = typename Codec::Computed;
  WithConstant<Codec, Quotient> kernel{static_cast<const char*>(from), {}};
  for (auto& part : kernel.constant.v) part = splat(static_cast<Computed>(divisor));
  run_cached(kernel, static_cast<char*>(to), 0, count * Codec::kElementBytes);
}

template <typename T>
void divide_integers(void* to, const void* from, size_t count, unsigned divisor) {
  const Divider<T> divider(divisor);
  for (size_t i = 0; i < count; i++) {
    const size_t at = i * sizeof(T);
    const T value = read<T>(static_cast<const char*>(from) + at);
    write(static_cast<char*>(to) + at, divider.quotient(value));
  }
}

template <typename Codec>
void scale_all(void* to, const void* from, const void* scalar, size_t count) {
  char repeated[kVectorBytes];
  for (size_t at = 0; at < kVectorBytes; at += Codec::kElementBytes)
    __builtin_memcpy(repeated + at, scalar, Codec::kElementBytes);
  run_cached(
      WithConstant<Codec, Product>{static_cast<const char*>(from), Codec::decode(load(repeated))},
      static_cast<char*>(to), 0, count * Codec::kElementBytes);
}

void stream_copy(void* to, const void* from, size_t bytes) {
  run_streaming(CopyOf{static_cast<const char*>(from)}, static_cast<char*>(to), bytes);
}

// The table.

template <typename Codec, typename Operator, size_t kElementBytes = Codec::kElementBytes>
constexpr void add_fold(KernelTable& table, Type type, Op op) {
  const auto row = static_cast<size_t>(type), column = static_cast<size_t>(op);
  table.fold_two[row][column] = fold_two<Codec, Operator, kElementBytes>;
  table.fold_many[row][column] = fold_many<Codec, Operator, kElementBytes>;
}

constexpr Op kSums[] = {Op::sum, Op::avg, Op::premul_sum};

template <typename Codec>
constexpr void add_arithmetic(KernelTable& table, Type type) {
  for (const Op op : kSums) add_fold<Codec, Sum>(table, type, op);
  add_fold<Codec, Product>(table, type, Op::prod);
  table.scale[static_cast<size_t>(type)] = scale_all<Codec>;
}

// Signs matter to min, max and division only: all else wraps as unsigned. To bit operators all
// integers are bytes.
template <typename T>
constexpr void add_integer(KernelTable& table, Type type) {
  using Wrapping = IntegerCodec<std::make_unsigned_t<T>>;
  add_arithmetic<Wrapping>(table, type);
  add_fold<IntegerCodec<T>, Max>(table, type, Op::max);
  add_fold<IntegerCodec<T>, Min>(table, type, Op::min);
  add_fold<IntegerCodec<uint8_t>, And, sizeof(T)>(table, type, Op::band);
  add_fold<IntegerCodec<uint8_t>, Or, sizeof(T)>(table, type, Op::bor);
  add_fold<IntegerCodec<uint8_t>, Xor, sizeof(T)>(table, type, Op::bxor);
  table.divide[static_cast<size_t>(type)] = divide_integers<T>;
}

template <typename Codec, typename MaxCodec = Codec, typename MinCodec = Codec>
constexpr void add_float(KernelTable& table, Type type) {
  add_arithmetic<Codec>(table, type);
  add_fold<MaxCodec, Max>(table, type, Op::max);
  add_fold<MinCodec, Min>(table, type, Op::min);
  table.divide[static_cast<size_t>(type)] = divide_floats<Codec>;
}

template <typename Codec, typename Format, typename T>
constexpr void add_narrow(KernelTable& table, Type type) {
  constexpr T kHighest = static_cast<T>(static_cast<std::make_unsigned_t<T>>(-1) / 2);
  add_float<Codec, OrderCodec<Format, T, kHighest>, OrderCodec<Format, T, T{-1 - kHighest}>>(table,
                                                                                             type);
}

#if defined(HCOMM_LANES_HALF)
template <typename Format>
constexpr void add_float8(KernelTable& table, Type type) {
  add_narrow<Float8Codec<Format>, Format, int8_t>(table, type);
  auto& two = table.fold_two[static_cast<size_t>(type)];
  for (const Op op : kSums)
    two[static_cast<size_t>(op)] = fold_two<Float8OfTwoCodec<Format, 1>, Sum>;
  two[static_cast<size_t>(Op::prod)] =
      fold_two<Float8OfTwoCodec<Format, kHalfScale<Format>>, Product>;
}
#else
template <typename Format>
constexpr void add_float8(KernelTable& table, Type type) {
  add_narrow<Float8Codec<Format>, Format, int8_t>(table, type);
}
#endif

constexpr KernelTable make_table(const char* name) {
  KernelTable table{};
  table.name = name;
  add_integer<int8_t>(table, Type::int8);
  add_integer<uint8_t>(table, Type::uint8);
  add_integer<int32_t>(table, Type::int32);
  add_integer<uint32_t>(table, Type::uint32);
  add_integer<int64_t>(table, Type::int64);
  add_integer<uint64_t>(table, Type::uint64);
  add_narrow<Float16Codec, Float16Format, int16_t>(table, Type::float16);
  add_float<Float32Codec>(table, Type::float32);
  add_float<Float64Codec>(table, Type::float64);
  add_narrow<BFloat16Codec, BFloat16Format, int16_t>(table, Type::bfloat16);
  add_float8<Float8E4M3Format>(table, Type::float8e4m3);
  add_float8<Float8E5M2Format>(table, Type::float8e5m2);
  table.stream = stream_copy;
  return table;
}

}  // namespace
}  // namespace hcomm
