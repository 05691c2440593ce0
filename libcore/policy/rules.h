// SPDX-License-Identifier: Apache-2.0
// What people say about the choice: HCOMM_ALGO and policy.conf. Both are read once, when a
// communicator is made, into values that choose() consults; a fault in one is an Error with file,
// line, column, what was seen and what is allowed. Owned by Inputs. Absent: rules about paths,
// codecs and fallbacks, which are refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace hcomm::policy {

// "all_reduce", "allreduce", "all-reduce": one of those that algorithms build.
std::optional<schedule::Collective> collective_named(std::string_view name);

// HCOMM_ALGO: "ring" for every collective that has a ring, "all_reduce=ring,broadcast=chain".
struct Wish {
  std::optional<schedule::Collective> collective;  // none: every one that has it
  std::string algorithm;
};
// Throws invalid_argument that names what exists.
std::vector<Wish> parse_wishes(std::string_view text);

enum class Subject : uint8_t { collective, ranks, size, dtype, link };
enum class Comparison : uint8_t { equal, unequal, less, at_most, greater, at_least };

struct Condition {
  Subject subject = Subject::ranks;
  Comparison comparison = Comparison::equal;
  uint64_t number = 0;  // of a collective or type: its enumerator; of a link: its index in kLinks
};
// What may join all ranks of a communicator, as rules name it.
inline constexpr std::string_view kLinks[] = {"shm", "tcp"};
inline constexpr uint64_t kWhole = UINT64_MAX;  // a tile that no message fills: "whole"

// "match COND, ... -> ACTION, ..." of [path_rule], or the same without match of [tuning].
struct Rule {
  std::vector<Condition> conditions;  // all must hold
  std::string algorithm;              // "": none named
  uint64_t tile_bytes = 0;            // 0: none named
  uint32_t window = 0;                // 0: none named
  int64_t priority = 0;               // the highest wins, then the first
  uint32_t line = 0;
  std::string text;  // as written, without comment and outer blanks
};

struct Rules {
  std::string file;
  std::vector<Rule> rules;
};
// Throws invalid_argument: "FILE:LINE:COLUMN: ...". Any bytes at all are safe to pass.
Rules parse_rules(std::string_view text, std::string_view file);
// Reads the file; "" reads /etc/hcomm/policy.conf where it exists. Throws invalid_argument, also
// when a file that was named cannot be read.
Rules load_rules(const std::string& path);

}  // namespace hcomm::policy
