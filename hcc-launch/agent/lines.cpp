// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/agent/lines.h"

namespace hcomm::launch {

bool LineSplitter::feed(std::string_view bytes, int64_t wall_ns, const TakePiece& take) {
  for (size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    if (held_.empty()) {
      take({bytes.substr(0, end), open_ ? line_wall_ns_ : wall_ns, !open_, true});
    } else {
      held_.append(bytes.substr(0, end));
      take({held_, line_wall_ns_, !open_, true});
      held_.clear();
    }
    open_ = false;
    bytes.remove_prefix(end + 1);
  }
  if (bytes.empty()) return false;
  const bool begins = held_.empty();
  if (held_.empty() && !open_) line_wall_ns_ = wall_ns;
  held_.append(bytes);
  if (held_.size() >= kMaxHeldBytes) flush(take);
  return begins && holds();
}

void LineSplitter::flush(const TakePiece& take) {
  if (held_.empty()) return;
  take({held_, line_wall_ns_, !open_, false});
  held_.clear();
  open_ = true;
}

}  // namespace hcomm::launch
