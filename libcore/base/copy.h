// SPDX-License-Identifier: Apache-2.0
// Copies between cores. The C library's memcpy copies 2 KiB and more with `rep movsb`, which crawls
// where the lines come out of another core's cache (6 times slower than these loops on a Zen 3
// guest). `copy_near` is the one to use on memory that another core writes or reads; `copy_far`
// goes past the caches, for lines that a distant core holds: plain stores would first fetch each of
// them back. Used by transport. Absent: copies with arithmetic (datatype).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// The sanitizers know memcpy only.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HCOMM_PLAIN_COPY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HCOMM_PLAIN_COPY 1
#endif
#endif
#if !defined(HCOMM_PLAIN_COPY) && !defined(__x86_64__)
#define HCOMM_PLAIN_COPY 1
#endif

namespace hcomm {

#if defined(HCOMM_PLAIN_COPY)

inline void copy_near(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
inline void copy_far(std::byte* to, const std::byte* from, size_t bytes) {
  copy_near(to, from, bytes);
}
inline void far_fence() {}

#else

namespace detail {

template <typename Word>
inline void copy_ends(std::byte* to, const std::byte* from, size_t bytes) {
  Word first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

// Less than 64 bytes, without a call or a loop.
inline void copy_small(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes >= 32) {
    copy_ends<__m128i>(to, from, 32);
    copy_ends<__m128i>(to + bytes - 32, from + bytes - 32, 32);
  } else if (bytes >= 16) {
    copy_ends<__m128i>(to, from, bytes);
  } else if (bytes >= 8) {
    copy_ends<uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_ends<uint32_t>(to, from, bytes);
  } else if (bytes != 0) {
    const std::byte middle = from[bytes / 2], last = from[bytes - 1];
    to[0] = from[0];
    to[bytes / 2] = middle;
    to[bytes - 1] = last;
  }
}

struct alignas(16) CopiedLine {
  __m128i part[4];
};
inline CopiedLine load_line(const std::byte* from) {
  const auto* part = reinterpret_cast<const __m128i*>(from);
  return {{_mm_loadu_si128(part), _mm_loadu_si128(part + 1), _mm_loadu_si128(part + 2),
           _mm_loadu_si128(part + 3)}};
}

}  // namespace detail

// As memcpy (nothing overlaps).
inline void copy_near(std::byte* to, const std::byte* from, size_t bytes) {
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
    const detail::CopiedLine line = detail::load_line(from);
    for (int i = 0; i < 4; i++) _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, line.part[i]);
  }
  detail::copy_small(to, from, bytes);
}

// As memcpy, best with `to` aligned to 64. Tell others with a release store after far_fence()
// only.
inline void copy_far(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t head = -reinterpret_cast<uintptr_t>(to) % 64;
  if (bytes >= head + 64) {
    detail::copy_small(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
      const detail::CopiedLine line = detail::load_line(from);
      for (int i = 0; i < 4; i++)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, line.part[i]);
    }
  }
  copy_near(to, from, bytes);
}

// A release store does not wait for streaming stores.
inline void far_fence() {
  _mm_sfence();
}

#endif

// Asks for all lines at once where the hardware would find out one by one; for a few KiB.
inline void prefetch_to_read(const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0);
}
inline void prefetch_to_write(std::byte* to, size_t bytes) {
#if defined(__x86_64__)
  // The compilers' builtin asks for a shared copy unless told of the processor.
  for (size_t at = 0; at < bytes; at += 64) asm volatile("prefetchw %0" ::"m"(to[at]));
#else
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(to + at, 1);
#endif
}

}  // namespace hcomm
