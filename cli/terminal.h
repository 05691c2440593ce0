// SPDX-License-Identifier: Apache-2.0
// What may be written to a stream: colour only where a terminal wants it (not in a pipe, not with
// NO_COLOR or TERM=dumb), and never a control byte that came from data. Used by every tool for all
// text that it prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hcomm::cli {

enum class ColorMode : uint8_t { automatic, always, never };
enum class Color : uint8_t { red, green, bold };

// The value of an environment variable of this process, "" when unset. The tools' own look at
// NO_COLOR, TERM and the variables of launchers; settings of the library are Config's.
std::string_view environment_value(std::string_view name);

class Painter {
 public:
  Painter() = default;  // never colours
  Painter(int fd, ColorMode mode);
  std::string paint(Color color, std::string_view text) const;

 private:
  bool colours_ = false;
};

// Standard output, at once; false: it could not all be written. Neither this nor `complain` throws,
// whatever stands at the other end: both are called where an exception is being handled.
bool show(std::string_view text) noexcept;
// `line`, made printable, and a newline, to standard error.
void complain(std::string_view line) noexcept;

// `text` with every control byte (and DEL) as \xNN: safe on a terminal whatever the data holds.
std::string printable(std::string_view text);
// `complain` of each line of a text.
void complain_lines(std::string_view text) noexcept;

}  // namespace hcomm::cli
