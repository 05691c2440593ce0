// SPDX-License-Identifier: Apache-2.0
// Where the kernel has put a core file: its pattern, core(5), with what is known of the process.
// Used by the report.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hcomm::launch {

struct CoreFacts {
  pid_t pid = 0;
  std::optional<pid_t> outer_pid;  // in the first namespace of processes, which a container hides
  uid_t uid = 0;
  gid_t gid = 0;
  int signal = 0;
  int64_t time_s = 0;
  std::string host, program;  // the file that was executed
};

// The name that the pattern means; nullopt where it holds what is not known here.
std::optional<std::string> expand_core_pattern(std::string_view pattern, bool append_pid,
                                               const CoreFacts& facts);

struct CoreFile {
  std::string path;  // "": not known
  std::string text;  // for people, the path or all that can be told
};
// `folder`: in which the process was started; it may have moved since, so only a file that is there
// is given as a path.
CoreFile find_core(CoreFacts facts, const std::string& folder);

}  // namespace hcomm::launch
