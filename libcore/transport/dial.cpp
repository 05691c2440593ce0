// SPDX-License-Identifier: Apache-2.0
#include "transport/dial.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/log.h"

namespace hcomm::transport {

namespace {

constexpr int64_t kStaggerMs = 100;   // before the next address is begun beside a silent one
constexpr int64_t kAnswerMs = 1000;   // the same, beside one that stands but has not answered
constexpr int64_t kTryMs = 3000;      // before a silent try begins again
constexpr int64_t kMaxPauseMs = 250;  // between tries

}  // namespace

Dial::Dial(std::vector<SocketAddress> addresses, std::string greeting, size_t buffer_bytes)
    : addresses_(std::move(addresses)),
      greeting_(std::move(greeting)),
      buffer_bytes_(buffer_bytes),
      attempts_(addresses_.size()),
      begin_ns_(now_ns()) {
  HCOMM_CHECK(!addresses_.empty(), "no address to dial");
}

bool Dial::advance() {
  if (joined_) return true;
  const auto is_open = [](const Attempt& attempt) { return bool(attempt.fd); };
  for (size_t i = 0; i < attempts_.size() && hopeless_ == 0; i++) {
    if (i == begun_) {
      if (!stagger_.passed() && std::any_of(attempts_.begin(), attempts_.end(), is_open)) break;
      begun_++;
    }
    if (step(i)) return true;
  }
  return false;
}

// True when this one is joined.
bool Dial::step(size_t index) {
  Attempt& attempt = attempts_[index];
  if (attempt.phase == Phase::closed && (attempt.next.endless() || attempt.next.passed()))
    begin(index);
  if (attempt.phase == Phase::connecting) {
    const int error = finish_connect(attempt.fd.get());
    if (error == 0)
      greet(attempt);
    else if (error != EINPROGRESS)
      drop(index, error);
  }
  if (attempt.phase == Phase::greeted && hear(attempt)) return true;
  if (attempt.error != EINPROGRESS && attempt.fd) drop(index, attempt.error);
  // A single address that took the greeting may take its time: nothing else is left to try.
  const bool wait_on = attempt.phase == Phase::greeted && attempts_.size() == 1;
  if (attempt.fd && attempt.next.passed() && !wait_on) drop(index, ETIMEDOUT);
  return false;
}

void Dial::begin(size_t index) {
  Attempt& attempt = attempts_[index];
  attempt.fd = start_connect(addresses_[index], buffer_bytes_);
  const int error = errno;
  stagger_ = Deadline::after_ms(kStaggerMs);
  if (!attempt.fd) {
    if (error == EMFILE || error == ENFILE) hopeless_ = error;
    drop(index, error);
    return;
  }
  attempt.error = EINPROGRESS;
  attempt.phase = Phase::connecting;
  attempt.next = Deadline::after_ms(kTryMs);
}

// The connection stands: the greeting goes out.
void Dial::greet(Attempt& attempt) {
  const ssize_t sent =
      ::send(attempt.fd.get(), greeting_.data(), greeting_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // A new connection has room for these few bytes; one that has not is broken.
  if (sent != static_cast<ssize_t>(greeting_.size())) {
    attempt.error = sent < 0 ? errno : ECONNRESET;
    return;
  }
  attempt.phase = Phase::greeted;
  stagger_ = Deadline::after_ms(kAnswerMs);
}

bool Dial::hear(Attempt& attempt) {
  char answer = 0;
  const ssize_t got = ::recv(attempt.fd.get(), &answer, 1, MSG_DONTWAIT);
  if (got < 0 && again(errno)) return false;
  if (got == 1 && answer == kAccepted &&
      ::send(attempt.fd.get(), &kCommitted, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
    joined_ = std::move(attempt.fd);
    return true;
  }
  // Closed without an answer: not our peer, or our peer refused.
  attempt.error = got < 0 ? errno : ECONNRESET;
  return false;
}

void Dial::drop(size_t index, int error) {
  Attempt& attempt = attempts_[index];
  attempt.fd.reset();
  attempt.phase = Phase::closed;
  attempt.error = error;
  // The pause grows with the time waited, so that a server that is only a little late is met soon
  // and one that is very late is not pestered.
  const int64_t pause_ms = std::clamp<int64_t>(waited_ms() / 8, 1, kMaxPauseMs);
  attempt.next = Deadline::after_ms(pause_ms);
  log(LogLevel::info, "connect {}: {}; trying again in {} ms", addresses_[index].text(),
      socket_error_text(error), pause_ms);
}

bool Dial::refused() const {
  return std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) {
    return attempt.error != 0 && attempt.error != EINPROGRESS && attempt.error != ETIMEDOUT;
  });
}

void Dial::interests(std::vector<pollfd>& descriptors) const {
  for (const Attempt& attempt : attempts_)
    if (attempt.fd)
      descriptors.push_back({attempt.fd.get(),
                             static_cast<short>(attempt.phase == Phase::greeted ? POLLIN : POLLOUT),
                             0});
}

int64_t Dial::wait_ms() const {
  int64_t ms = begun_ < attempts_.size() ? stagger_.left_ms() : kTryMs;
  for (size_t i = 0; i < begun_; i++) {
    const bool wait_on = attempts_[i].phase == Phase::greeted && attempts_.size() == 1;
    if (!wait_on) ms = std::min(ms, attempts_[i].next.left_ms());
  }
  return ms;
}

std::string Dial::text() const {
  std::string text;
  for (size_t i = 0; i < attempts_.size(); i++) {
    const int error = attempts_[i].error;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", addresses_[i].text(),
                        error == 0             ? "not tried yet"
                        : error == EINPROGRESS ? "no answer yet"
                                               : socket_error_text(error));
  }
  return text;
}

}  // namespace hcomm::transport
