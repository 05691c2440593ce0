// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "base/config.h"

namespace hcomm::cli {

std::string_view environment_value(std::string_view name) {
  return value_of(process_environment(), name);
}

Painter::Painter(int fd, ColorMode mode) : colours_(mode == ColorMode::always) {
  if (mode != ColorMode::automatic || isatty(fd) == 0) return;
  const std::string_view term = environment_value("TERM");
  colours_ = environment_value("NO_COLOR").empty() && !term.empty() && term != "dumb";
}

std::string Painter::paint(Color color, std::string_view text) const {
  static constexpr std::string_view kCodes[] = {"31", "32", "1"};
  if (!colours_) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(color)], text);
}

bool show(std::string_view text) noexcept {
  const bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return std::fflush(stdout) == 0 && taken;
}

void complain(std::string_view line) noexcept {
  try {
    const std::string text = printable(line) + "\n";
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t bytes = write(2, rest.data(), rest.size());
      if (bytes < 0 && errno != EINTR) return;
      rest.remove_prefix(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    }
  } catch (const std::exception&) {  // no memory for a line: the exit code has to do
  }
}

void complain_lines(std::string_view text) noexcept {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    complain(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

}  // namespace hcomm::cli
