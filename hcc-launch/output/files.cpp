// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/output/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace hcomm::launch {

namespace {

constexpr size_t kBufferBytes = 64 << 10;

std::string substitute(char letter, const Job& job, const RankPlan& plan, Stream stream) {
  switch (letter) {
    case 'h':
      return job.host;
    case 'R':
      return fmt::format("{}", plan.rank);
    case 'r':
      return fmt::format("{}", plan.local_rank);
    case 'j':
      return job.id;
    case 's':
      return stream == Stream::out ? "out" : "err";
    case '%':
      return "%";
    default:
      fail(Code::invalid_argument,
           "--output-pattern: %{} means nothing; use %h %R %r %j %s, %% for a percent sign",
           letter == 0 ? ' ' : letter);
  }
}

}  // namespace

std::string expand_pattern(std::string_view pattern, const Job& job, const RankPlan& plan,
                           Stream stream) {
  std::string path;
  bool names_stream = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : '\0';
    names_stream = names_stream || letter == 's';
    path += substitute(letter, job, plan, stream);
  }
  if (names_stream || stream == Stream::out) return path;
  if (path.ends_with(".out")) path.resize(path.size() - 4);
  return path + ".err";
}

std::vector<std::string> output_paths(std::string_view pattern, const Job& job) {
  std::vector<std::string> paths;
  std::map<std::string, uint32_t> owners;
  for (const RankPlan& plan : job.ranks)
    for (const Stream stream : kStreams) {
      paths.push_back(expand_pattern(pattern, job, plan, stream));
      const auto [owner, is_new] = owners.emplace(paths.back(), plan.rank);
      if (!is_new)
        fail(Code::invalid_argument,
             "--output-pattern '{}': ranks {} and {} would both write {}; put %R into it", pattern,
             owner->second, plan.rank, paths.back());
    }
  return paths;
}

OutputFiles::OutputFiles(std::string_view pattern, const Job& job, Time time) : time_(time) {
  for (std::string& path : output_paths(pattern, job)) files_.push_back({std::move(path), {}, {}});
  for (File& file : files_) {
    std::error_code ignored;  // the open below tells what is wrong
    const auto folder = std::filesystem::path(file.path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    file.fd.reset(open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file.fd) fail_system(errno, "--output-pattern: open {}", file.path);
  }
}

void OutputFiles::write(uint32_t rank, Stream stream, const Piece& piece) {
  const size_t index = rank * 2 + static_cast<size_t>(stream);
  File& file = files_[index];
  if (!file.fd) return;
  if (file.buffer.empty()) dirty_.push_back(index);
  if (time_ == Time::stamped && piece.begins) file.buffer += utc_text(piece.wall_ns) + " ";
  file.buffer += piece.text;
  if (piece.ends) file.buffer += '\n';
  if (file.buffer.size() > kBufferBytes) flush(file);
}

void OutputFiles::flush() {
  for (const size_t index : dirty_) flush(files_[index]);
  dirty_.clear();
}

void OutputFiles::flush(File& file) {
  size_t written = 0;
  while (file.fd && written < file.buffer.size()) {
    const ssize_t bytes =
        ::write(file.fd.get(), file.buffer.data() + written, file.buffer.size() - written);
    if (bytes >= 0) {
      written += static_cast<size_t>(bytes);
    } else if (errno != EINTR) {
      error_ += fmt::format("{}write {}: {}; the rest of this output is lost",
                            error_.empty() ? "" : "; ", file.path, strerror(errno));
      file.fd.reset();
    }
  }
  file.buffer.clear();
}

std::string OutputFiles::take_error() {
  return std::exchange(error_, {});
}

}  // namespace hcomm::launch
