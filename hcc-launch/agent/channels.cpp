// SPDX-License-Identifier: Apache-2.0
// The agent's half that reads what ranks write.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "hcc-launch/agent/agent.h"

namespace hcomm::launch {

void Agent::watch_channel(uint32_t rank, Stream stream) {
  if (paused_[static_cast<size_t>(stream)]) return;
  const int fd = channel(rank, stream).fd.get();
  loop_.watch(fd, EPOLLIN, [this, rank, stream] { read_channel(rank, stream); });
}

bool Agent::read_channel(uint32_t rank, Stream stream) {
  Channel& from = channel(rank, stream);
  if (!from.fd) return false;
  const ssize_t bytes = read(from.fd.get(), buffer_.data(), buffer_.size());
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (bytes <= 0) {
    close_channel(rank, stream);
    return false;
  }
  const auto take = [&](const Piece& piece) { events_.on_output(rank, stream, piece); };
  const bool begun = from.lines.feed({buffer_.data(), static_cast<size_t>(bytes)}, wall_ns(), take);
  if (settings_.held_ms == 0) from.lines.flush(take);
  if (begun && from.lines.holds()) {
    from.held_since_ns = now_ns();
    if (flush_timer_ == 0)
      flush_timer_ = loop_.after_ms(settings_.held_ms, [this] { flush_held(); });
  }
  return true;
}

void Agent::close_channel(uint32_t rank, Stream stream) {
  Channel& from = channel(rank, stream);
  if (!from.fd) return;
  from.lines.flush([&](const Piece& piece) { events_.on_output(rank, stream, piece); });
  loop_.forget(from.fd.get());
  from.fd.reset();
  open_channels_--;
}

void Agent::flush_held() {
  flush_timer_ = 0;
  const int64_t now = now_ns();
  int64_t oldest = INT64_MAX;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++)
    for (const Stream stream : kStreams) {
      Channel& from = channel(rank, stream);
      if (!from.lines.holds()) continue;
      if (now - from.held_since_ns >= settings_.held_ms * 1'000'000)
        from.lines.flush([&](const Piece& piece) { events_.on_output(rank, stream, piece); });
      else
        oldest = std::min(oldest, from.held_since_ns);
    }
  if (oldest == INT64_MAX) return;
  const int64_t left_ms = settings_.held_ms - (now - oldest) / 1'000'000;
  flush_timer_ = loop_.after_ms(left_ms, [this] { flush_held(); });
}

// What a dead writer left in its pipe; bounded, since another process may hold the pipe and write
// on.
void Agent::read_rest(uint32_t rank, Stream stream) {
  constexpr size_t kLargestPipeBytes = 1 << 20;
  for (size_t i = 0; i <= kLargestPipeBytes / kReadBytes; i++)
    if (paused_[static_cast<size_t>(stream)] || !read_channel(rank, stream)) return;
}

// No process of the job is left: what stands in the pipes is all that will come. A descriptor that
// somebody outside the job still holds must not keep us.
void Agent::drain() {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++)
    for (const Stream stream : kStreams) {
      read_rest(rank, stream);
      if (!paused_[static_cast<size_t>(stream)]) close_channel(rank, stream);
    }
}

void Agent::pause(Stream stream) {
  bool& paused = paused_[static_cast<size_t>(stream)];
  if (paused) return;
  paused = true;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++)
    if (const UniqueFd& fd = channel(rank, stream).fd) loop_.forget(fd.get());
}

void Agent::resume(Stream stream) {
  bool& paused = paused_[static_cast<size_t>(stream)];
  if (!paused) return;
  paused = false;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++)
    if (channel(rank, stream).fd) watch_channel(rank, stream);
}

void Agent::close_output(Stream stream) {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) close_channel(rank, stream);
}

}  // namespace hcomm::launch
