// SPDX-License-Identifier: Apache-2.0
#include "hcc-launch/output/printer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <utility>

#include "base/clock.h"

namespace hcomm::launch {

namespace {

bool same_file(int a, int b) {
  struct stat first {
  }, second{};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// On a terminal the states of a progress bar replace one another: the last is what one would see.
std::string_view last_state(std::string_view text) {
  while (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const size_t at = text.rfind('\r');
  return at == text.npos ? text : text.substr(at + 1);
}

}  // namespace

// The mode of fd itself is shared with other processes (our shell's terminal): it stays as it is.
Sink::Sink(Loop& loop, int fd) : loop_(loop), fd_(fd), terminal_(isatty(fd) != 0) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return;
  regular_ = S_ISREG(info.st_mode);
  socket_ = S_ISSOCK(info.st_mode);
  if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) return;
  own_.reset(open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own_) fd_ = own_.get();
}

Sink::~Sink() {
  if (watched_) loop_.forget(fd_);
}

// Then it is asked first: a pipe that is writable has room for what we write at once.
bool Sink::may_block() const {
  if (regular_ || socket_ || own_) return false;
  pollfd poll_fd{fd_, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) <= 0;
}

ssize_t Sink::write_some(std::string_view bytes) const {
  return socket_ ? send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT)
                 : write(fd_, bytes.data(), bytes.size());
}

// A pipe that is writable takes PIPE_BUF bytes. Whole lines, where there is one: other processes
// may write to the same place.
std::string_view Sink::next_write() const {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  const size_t most = regular_ ? rest.size() : std::min<size_t>(rest.size(), PIPE_BUF);
  const size_t newline = rest.substr(0, most).rfind('\n');
  return rest.substr(0, most == rest.size() || newline == rest.npos ? most : newline + 1);
}

void Sink::flush() {
  while (!empty() && error_ == 0 && !may_block()) {
    const ssize_t bytes = write_some(next_write());
    if (bytes >= 0)
      begin_ += static_cast<size_t>(bytes);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      error_ = errno;
  }
  if (empty() || error_ != 0) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > kFullBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  if (const bool wanted = !empty(); wanted != watched_) {
    if (wanted)
      loop_.watch(fd_, EPOLLOUT, [this] { flush(); });
    else
      loop_.forget(fd_);
    watched_ = wanted;
  }
}

bool passes_through(const PrinterSettings& settings) {
  return settings.ranks == 1 && !settings.timestamp &&
         (settings.label == Label::automatic || settings.label == Label::none);
}

Printer::Printer(Loop& loop, PrinterSettings settings)
    : settings_(std::move(settings)),
      passes_through_(passes_through(settings_)),
      out_(std::make_unique<Sink>(loop, 1)) {
  if (!same_file(1, 2)) err_ = std::make_unique<Sink>(loop, 2);
}

bool Printer::labelled(Sink& sink, uint32_t rank) const {
  if (settings_.label != Label::automatic) return settings_.label != Label::none;
  if (settings_.ranks == 1 || !sink.terminal()) return false;
  if (sink.first_rank < 0) sink.first_rank = static_cast<int>(rank);
  sink.several_ranks = sink.several_ranks || sink.first_rank != static_cast<int>(rank);
  return sink.several_ranks;
}

void Printer::begin_line(Sink& sink, uint32_t rank, const Piece& piece,
                         std::string_view mark) const {
  if (settings_.timestamp) sink.append(utc_text(piece.wall_ns) + " ");
  if (!labelled(sink, rank)) return;
  if (settings_.label == Label::host_rank)
    sink.append(fmt::format("[{}:{}]{}", settings_.host, rank, mark));
  else
    sink.append(fmt::format("[{}]{}", rank, mark));
}

void Printer::print(uint32_t rank, Stream stream, const Piece& piece) {
  Sink& to = sink(stream);
  if (to.error() != 0) return;
  const bool continues = to.line_open && to.line_rank == rank && to.line_stream == stream;
  std::string_view text = piece.text;
  if (text.empty() && !piece.begins && !continues) return;  // its line was ended by another's
  const bool redraws = to.terminal() && !passes_through_ && text.find('\r') != text.npos;
  if (redraws) text = last_state(text);
  if (!passes_through_) {
    if (to.line_open && !continues) to.append("\n");
    if (redraws && continues) to.append("\r\x1b[K");
    if (!continues || redraws) begin_line(to, rank, piece, piece.begins || redraws ? " " : "+");
  }
  to.append(text);
  if (piece.ends) to.append("\n");
  to.line_open = !piece.ends;
  to.line_rank = rank;
  to.line_stream = stream;
  if (to.full()) to.flush();
}

void Printer::note(std::string_view text) {
  Sink& to = sink(Stream::err);
  if (to.line_open) to.append("\n");
  to.line_open = false;
  to.append(text);
}

void Printer::end_lines() {
  for (const Stream stream : kStreams) {
    Sink& to = sink(stream);
    if (to.line_open && !passes_through_) to.append("\n");
    to.line_open = false;
  }
}

void Printer::flush() {
  out_->flush();
  if (err_) err_->flush();
}

}  // namespace hcomm::launch
