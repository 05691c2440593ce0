// SPDX-License-Identifier: Apache-2.0
// Our standard output and standard error as the ranks' lines appear there: labelled, line by line,
// never two ranks in one line. Owned by front. Each destination has a bounded buffer and never
// blocks the loop; when it is full front stops reading from the ranks, who then wait in their
// writes. Where both destinations are the same file they share one buffer, so their order is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "hcc-launch/agent/lines.h"
#include "hcc-launch/agent/loop.h"
#include "hcc-launch/options.h"

namespace hcomm::launch {

// One destination.
class Sink {
 public:
  Sink(Loop& loop, int fd);
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink();

  void append(std::string_view text) { buffer_ += text; }
  void flush();  // as much as can be written now; the loop goes on with the rest
  bool empty() const { return begin_ == buffer_.size(); }
  bool full() const { return buffer_.size() - begin_ > kFullBytes; }
  bool drained() const { return buffer_.size() - begin_ < kFullBytes / 2; }
  int error() const { return error_; }  // errno that ended it; what comes later is dropped
  bool terminal() const { return terminal_; }

  // The line that stands unfinished in this destination, if any.
  bool line_open = false;
  uint32_t line_rank = 0;
  Stream line_stream = Stream::out;
  // Which rank wrote first, for --label auto.
  int first_rank = -1;
  bool several_ranks = false;

 private:
  static constexpr size_t kFullBytes = 1 << 20;

  bool may_block() const;
  ssize_t write_some(std::string_view bytes) const;
  std::string_view next_write() const;

  Loop& loop_;
  int fd_;
  UniqueFd own_;  // the same place, opened anew so that we alone see it non-blocking; -1: cannot be
  bool terminal_ = false, regular_ = false, socket_ = false, watched_ = false;
  std::string buffer_;
  size_t begin_ = 0;
  int error_ = 0;
};

struct PrinterSettings {
  Label label = Label::automatic;
  bool timestamp = false;
  std::string host;
  uint32_t ranks = 1;
};

// One rank without labels: its bytes pass as they are, at once.
bool passes_through(const PrinterSettings& settings);

class Printer {
 public:
  Printer(Loop& loop, PrinterSettings settings);

  void print(uint32_t rank, Stream stream, const Piece& piece);
  void note(std::string_view text);  // the launcher's own lines, on standard error
  void end_lines();                  // at the end of the job
  void flush();

  Sink& sink(Stream stream) { return stream == Stream::err && err_ ? *err_ : *out_; }

 private:
  bool labelled(Sink& sink, uint32_t rank) const;
  void begin_line(Sink& sink, uint32_t rank, const Piece& piece, std::string_view mark) const;

  PrinterSettings settings_;
  bool passes_through_;
  std::unique_ptr<Sink> out_, err_;  // err_ null: the same file as out_
};

}  // namespace hcomm::launch
