// SPDX-License-Identifier: Apache-2.0
// Cuts what a rank writes into lines. Owned by the agent, one for each stream of a rank. A whole
// line is passed on at once; the begin of a line is held until its end arrives, until it has been
// held for kHeldMs (the agent's timer calls flush) or until it has kMaxHeldBytes. So memory is
// bounded and a prompt or a progress bar becomes visible. Bytes are never changed. Absent: labels,
// which are the printer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hcomm::launch {

inline constexpr int64_t kHeldMs = 200;
inline constexpr size_t kMaxHeldBytes = 64 << 10;

enum class Stream : uint8_t { out, err };
inline constexpr Stream kStreams[] = {Stream::out, Stream::err};

// A line, or a part of one. The text is valid during the call only.
struct Piece {
  std::string_view text;  // without the newline
  int64_t wall_ns;        // when the first byte of its line was read from the rank
  bool begins, ends;      // the line
};
using TakePiece = std::function<void(const Piece&)>;

class LineSplitter {
 public:
  // True when what is held now has begun within these bytes.
  bool feed(std::string_view bytes, int64_t wall_ns, const TakePiece& take);
  void flush(const TakePiece& take);  // what is held, as an unfinished piece
  bool holds() const { return !held_.empty(); }

 private:
  std::string held_;
  int64_t line_wall_ns_ = 0;
  bool open_ = false;  // a part of this line has been passed on
};

}  // namespace hcomm::launch
