// SPDX-License-Identifier: Apache-2.0
// Sizes and lists as people write and read them, and arithmetic on sizes. Bare K M G and KiB MiB
// GiB are 1024, kB MB GB are 1000, everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hcomm {

inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;

constexpr size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }
constexpr size_t divide_up(size_t value, size_t by) { return (value + by - 1) / by; }

// "64K", "1.5MiB", "10MB", "512" -> bytes. Throws invalid_argument that quotes the text.
size_t parse_size(std::string_view text);
// "250ms", "1.5s", "2m", "30" (seconds) -> nanoseconds. Throws invalid_argument.
int64_t parse_duration_ns(std::string_view text);
// 65536 -> "64KiB", 1000 -> "1000B": exact, largest binary unit that divides it.
std::string size_text(size_t bytes);

// FNV-1a, for hashes that ranks compare; not for hostile input.
constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;
constexpr uint64_t hash_bytes(std::string_view bytes, uint64_t hash = kHashSeed) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}
constexpr uint64_t hash_number(uint64_t value, uint64_t hash = kHashSeed) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

// "a, b,,c" -> a b c; views of the text.
std::vector<std::string_view> split_list(std::string_view text);

// The entry of `known` with the least edit distance to `text`, "" when none is near.
std::string nearest(std::string_view text, const std::string_view* known, size_t count);

}  // namespace hcomm
