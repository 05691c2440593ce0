// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/config.h"

namespace hcomm::cli {

std::string_view environment_value(std::string_view name) {
  for (const char* entry : process_environment()) {
    const std::string_view text = entry;
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
      return text.substr(name.size() + 1);
  }
  return {};
}

Painter::Painter(int fd, ColorMode mode) : colours_(mode == ColorMode::always) {
  if (mode != ColorMode::automatic || isatty(fd) == 0) return;
  const std::string_view term = environment_value("TERM");
  colours_ = environment_value("NO_COLOR").empty() && !term.empty() && term != "dumb";
}

std::string Painter::paint(Color color, std::string_view text) const {
  static constexpr std::string_view kCodes[] = {"0", "31", "32", "33", "1", "2"};
  if (!colours_ || color == Color::plain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(color)], text);
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
