// SPDX-License-Identifier: Apache-2.0
// Vectors of the width that one instruction set has, and the few operations that the compiler's own
// vector types lack. Included by kernels_<set>.cpp alone, which define HCOMM_LANES_AVX2,
// HCOMM_LANES_AVX512 or neither (16 bytes, any architecture). Everything here and in codecs.h and
// body.h has internal linkage and calls nothing inline of the standard library: code compiled for
// one processor must never be the copy that the linker keeps for another. Absent: arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HCOMM_INLINE [[gnu::always_inline]] inline

namespace hcomm {
namespace {

#if defined(HCOMM_LANES_AVX512)
constexpr size_t kVectorBytes = 64;
#elif defined(HCOMM_LANES_AVX2)
constexpr size_t kVectorBytes = 32;
#else
constexpr size_t kVectorBytes = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
using Raw = Vector<uint64_t>;  // the bytes of one vector in memory, whatever they mean

// The same bits as elements of another type.
template <typename T, typename From>
HCOMM_INLINE Vector<T> as(From vector) {
  return (Vector<T>)vector;
}

template <typename T>
HCOMM_INLINE Vector<T> splat(T value) {
  return value - Vector<T>{};
}

// Bits of `yes` where the mask is all ones, of `no` where it is zero.
template <typename Mask, typename V>
HCOMM_INLINE V select(Mask mask, V yes, V no) {
  return mask ? yes : no;
}

template <typename T>
HCOMM_INLINE T read(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
HCOMM_INLINE void write(char* to, T value) {
  __builtin_memcpy(to, &value, sizeof value);
}

HCOMM_INLINE Raw load(const char* from) {
  return read<Raw>(from);
}
HCOMM_INLINE void store(char* to, Raw raw) {
  write(to, raw);
}

// `to` is aligned to the vector.
HCOMM_INLINE void stream(char* to, Raw raw) {
#if defined(HCOMM_LANES_AVX512)
  _mm512_stream_si512((__m512i*)to, (__m512i)raw);
#elif defined(HCOMM_LANES_AVX2)
  _mm256_stream_si256((__m256i*)to, (__m256i)raw);
#elif defined(__x86_64__)
  _mm_stream_si128((__m128i*)to, (__m128i)raw);
#else
  store(to, raw);
#endif
}

HCOMM_INLINE void fence_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Fewer bytes than a vector has, at least one element: as a vector that holds all of them, some
// twice perhaps, each at a multiple of its size; and back. No other byte is touched.
#if defined(HCOMM_LANES_AVX512)

HCOMM_INLINE __mmask64 first_bytes(size_t bytes) {
  return (uint64_t{1} << bytes) - 1;
}

HCOMM_INLINE Raw load_part(const char* from, size_t bytes) {
  return (Raw)_mm512_maskz_loadu_epi8(first_bytes(bytes), from);
}

HCOMM_INLINE void store_part(char* to, Raw raw, size_t bytes) {
  _mm512_mask_storeu_epi8(to, first_bytes(bytes), (__m512i)raw);
}

#else

// The first and the last bytes, as many of each as the widest type has that fits; they overlap.
template <typename Half>
HCOMM_INLINE uint64_t read_ends(const char* from, size_t bytes) {
  const uint64_t last = read<Half>(from + bytes - sizeof(Half));
  return read<Half>(from) | last << sizeof(Half) * 8;
}

template <typename Half>
HCOMM_INLINE void write_ends(char* to, uint64_t word, size_t bytes) {
  write(to, static_cast<Half>(word));
  write(to + bytes - sizeof(Half), static_cast<Half>(word >> sizeof(Half) * 8));
}

HCOMM_INLINE Raw load_part(const char* from, size_t bytes) {
#if defined(HCOMM_LANES_AVX2)
  if (bytes >= 16) {
    const char* const last = from + bytes - 16;
    return (Raw)_mm256_loadu2_m128i((const __m128i*)last, (const __m128i*)from);
  }
#endif
  if (bytes >= 8) return Raw{read<uint64_t>(from), read<uint64_t>(from + bytes - 8)};
  if (bytes >= 4) return Raw{read_ends<uint32_t>(from, bytes)};
  if (bytes >= 2) return Raw{read_ends<uint16_t>(from, bytes)};
  return Raw{read<uint8_t>(from)};
}

HCOMM_INLINE void store_part(char* to, Raw raw, size_t bytes) {
#if defined(HCOMM_LANES_AVX2)
  if (bytes >= 16) {
    _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128((__m256i)raw));
    _mm_storeu_si128((__m128i*)(to + bytes - 16), _mm256_extracti128_si256((__m256i)raw, 1));
    return;
  }
#endif
  if (bytes >= 8) {
    write(to, raw[0]);
    write(to + bytes - 8, raw[1]);
  } else if (bytes >= 4) {
    write_ends<uint32_t>(to, raw[0], bytes);
  } else if (bytes >= 2) {
    write_ends<uint16_t>(to, raw[0], bytes);
  } else {
    write(to, static_cast<uint8_t>(raw[0]));
  }
}

#endif

// float16 by the processor: a vector of halves as two of floats, and back, to nearest even. Also
// the low halves of two vectors of 32-bit numbers (below 65536) as one vector, in order.
#if defined(HCOMM_LANES_AVX512)
#define HCOMM_LANES_HALF
HCOMM_INLINE void widen_halves(Raw raw, Vector<float>& low, Vector<float>& high) {
  low = (Vector<float>)_mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)raw));
  high = (Vector<float>)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)raw, 1));
}
HCOMM_INLINE Raw narrow_halves(Vector<float> low, Vector<float> high) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return (Raw)_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph((__m512)low, kNearest)),
                                 _mm512_cvtps_ph((__m512)high, kNearest), 1);
}
HCOMM_INLINE Vector<uint16_t> pack_words(Vector<uint32_t> low, Vector<uint32_t> high) {
  return (Vector<uint16_t>)_mm512_inserti64x4(
      _mm512_castsi256_si512(_mm512_cvtepi32_epi16((__m512i)low)),
      _mm512_cvtepi32_epi16((__m512i)high), 1);
}
#elif defined(HCOMM_LANES_AVX2)
#define HCOMM_LANES_HALF
HCOMM_INLINE void widen_halves(Raw raw, Vector<float>& low, Vector<float>& high) {
  low = (Vector<float>)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)raw));
  high = (Vector<float>)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)raw, 1));
}
HCOMM_INLINE Raw narrow_halves(Vector<float> low, Vector<float> high) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return (Raw)_mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm256_cvtps_ph((__m256)low, kNearest)),
      _mm256_cvtps_ph((__m256)high, kNearest), 1);
}
HCOMM_INLINE Vector<uint16_t> pack_words(Vector<uint32_t> low, Vector<uint32_t> high) {
  const __m256i mixed = _mm256_packus_epi32((__m256i)low, (__m256i)high);  // by halves
  return (Vector<uint16_t>)_mm256_permute4x64_epi64(mixed, 0xd8);
}
#endif

}  // namespace
}  // namespace hcomm
