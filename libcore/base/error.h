// SPDX-License-Identifier: Apache-2.0
// Errors. Set-up throws Error; the data path returns Status; a broken invariant aborts through
// HCOMM_CHECK. Exceptions end in api/, a tool's main, or at the root of a thread or of a task of
// the service thread; before, an Error is caught only where there is something else to try, or to
// add to its text. Absent: errno wrappers that hide what was done: a message says what was done, to
// whom, what was seen and what to do.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace hcomm {

// Codes by the caller's reaction.
enum class Code : uint8_t {
  ok,
  invalid_argument,  // refuse this call
  invalid_usage,     // ranks disagree
  unavailable,       // not on this machine; use something else
  timeout,
  peer_failed,
  aborted,
  unsupported,
  system,
  internal,
};

std::string_view name(Code code);

class Error : public std::exception {
 public:
  Error(Code code, std::string text, int peer = -1)
      : code_(code), peer_(peer), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  Code code() const { return code_; }
  int peer() const { return peer_; }  // the rank that is blamed, -1: nobody
  const std::string& text() const { return text_; }

 private:
  Code code_;
  int peer_;
  std::string text_;
};

template <typename... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// "connect tcp 10.0.0.2:4711: Connection refused": appends the text of errno.
[[noreturn]] void fail_errno(int error, std::string what);
template <typename... Args>
[[noreturn]] void fail_system(int error, fmt::format_string<Args...> format, Args&&... args) {
  fail_errno(error, fmt::format(format, std::forward<Args>(args)...));
}

// Result of a call in the data path.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(Code code) : code_(code) {}  // NOLINT: a code is a status
  constexpr bool ok() const { return code_ == Code::ok; }
  constexpr Code code() const { return code_; }
  friend constexpr bool operator==(Status, Status) = default;

 private:
  Code code_ = Code::ok;
};

[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               std::string values);

}  // namespace hcomm

// HCOMM_CHECK(a < b, "a={} b={}", a, b): aborts with the values when a rule of ours is broken.
#define HCOMM_CHECK(condition, ...)                                                     \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::hcomm::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
