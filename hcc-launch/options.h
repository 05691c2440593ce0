// SPDX-License-Identifier: Apache-2.0
// The command line of hcc-launch: one table (describe), used by its parser, --help, the completions
// and the test that compares the man page. Absent: what follows from an option, which is plan's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "hcc-launch/agent/binding.h"
#include "hcc-launch/job.h"

namespace hcomm::launch {

enum class Bind : uint8_t { none, core, numa, list };
enum class Label : uint8_t { automatic, none, rank, host_rank };

// One program of the job ("-n 2 a : -n 1 b" has two).
struct Program {
  uint32_t ranks = 1;
  std::vector<std::string> command;
  std::vector<std::string> exports, unset, env_files;
  std::string folder;
};

struct Wrap {
  std::vector<uint32_t> ranks;  // empty: all
  std::vector<std::string> command;
};

struct Options {
  std::vector<Program> programs;
  Bind bind = Bind::none;
  std::vector<Cores> bind_list;
  bool show_bindings = false, dry_run = false;
  Label label = Label::automatic;
  bool timestamp = false, tee = false;
  std::string output_pattern;
  StdinTo stdin_to = StdinTo::one;
  uint32_t stdin_rank = 0;
  std::vector<Wrap> wraps;
  int64_t timeout_ms = 0;  // 0: none
  int64_t grace_ms = 3000;
  bool keep_going = false;
  std::string report;
  cli::Common common;

  std::string print;  // not a job: text for standard output
};

// Options of the group kProgramGroup set Options::programs.back().
inline constexpr std::string_view kProgramGroup = "Each program";
void describe(CLI::App& parser, Options& options);

// Without the program's own name. Throws Error(invalid_argument): a mistake, and what to do.
Options parse_options(std::span<char* const> arguments);

// a 'b c' "d" e\ f as a shell splits it, without expansions.
std::vector<std::string> split_words(std::string_view text);

}  // namespace hcomm::launch
