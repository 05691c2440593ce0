// SPDX-License-Identifier: Apache-2.0
// A file for each stream of each rank (--output-pattern). Owned by front. Files hold the bytes as
// the rank wrote them, without labels; with --timestamp each line begins with its time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "hcc-launch/agent/lines.h"
#include "hcc-launch/job.h"

namespace hcomm::launch {

// %h host, %R rank, %r rank on its host, %j job, %s "out" or "err", %% a percent sign. Without %s
// standard error goes to the same name with .err in place of .out, or behind it. Throws
// invalid_argument for any other %.
std::string expand_pattern(std::string_view pattern, const Job& job, const RankPlan& plan,
                           Stream stream);

// The paths of all ranks, two each, by stream. Throws invalid_argument for a pattern that means
// nothing or would have two ranks share a file; nothing is made.
std::vector<std::string> output_paths(std::string_view pattern, const Job& job);

class OutputFiles {
 public:
  enum class Time : uint8_t { plain, stamped };
  // Makes folders and files. Throws system errors.
  OutputFiles(std::string_view pattern, const Job& job, Time time);

  void write(uint32_t rank, Stream stream, const Piece& piece);
  void flush();
  const std::string& path(uint32_t rank, Stream stream) const {
    return files_[rank * 2 + static_cast<size_t>(stream)].path;
  }
  std::string take_error();  // what went wrong since the last call, once a file

 private:
  struct File {
    std::string path;
    UniqueFd fd;
    std::string buffer;
  };

  void flush(File& file);

  std::vector<File> files_;
  std::vector<size_t> dirty_;
  Time time_;
  std::string error_;
};

}  // namespace hcomm::launch
